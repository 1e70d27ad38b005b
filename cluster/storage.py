"""Describes storage that pods of all workers share: directories of this machine, as volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

STORAGE_CLASS: Final = "tandem-shared"
"""Storage class of all shared volumes."""

ON_NODES: Final = "/tandem-shared"
"""Path in every worker where this machine's shared directory is mounted."""

# Not enforced, but a claim has to name a size.
_SIZE = "1Gi"


def shared_claim(namespace: str, name: str) -> list[dict[str, Any]]:
    """Describe a claim that pods on all nodes may write to, and its volume.

    Pods see the directory `<namespace>/<name>` of the shared directory, which has to exist.
    """
    volume = f"{namespace}-{name}"
    capacity = {"storage": _SIZE}
    access = ["ReadWriteMany"]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": capacity,
                "accessModes": access,
                "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": namespace, "name": name},
                "hostPath": {"path": f"{ON_NODES}/{namespace}/{name}", "type": "Directory"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": access,
                "storageClassName": STORAGE_CLASS,
                "volumeName": volume,
                "resources": {"requests": capacity},
            },
        },
    ]


def open_directory(path: Path) -> None:
    """Create a directory that every user may write to: pods run as users unknown to the host."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)

"""Volumes of a pod, one after the other, in the directory that it keeps for its life.

The successor is created before its predecessor is removed: whenever the process dies, the next one
finds a volume, and never reuses a number.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tandem_core.contract.volume_ids import PodVolume, pod_volume

CARRIED_OVER = ("pair", "birth")
"""Files beside the keys that belong to the pod, and so are copied to the next volume."""


def current_volume(home: Path, pod: str) -> Path:
    """The directory of a pod's volume; the first one if there is none. Older ones are removed."""
    found = sorted(_volumes(home, pod))
    for older in found[:-1]:
        shutil.rmtree(home / older.id)
    current = found[-1] if found else PodVolume(pod, 0)
    return home / current.id


def succeed(volume: Path) -> Path:
    """Create the next volume and remove this one, whose keys are discarded."""
    parts = pod_volume(volume.name)
    if parts is None:
        raise ValueError(f"{volume} is no volume of a pod")
    successor = volume.with_name(parts.next.id)
    draft = volume.with_name(f".{successor.name}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for name in CARRIED_OVER:
        if (volume / name).exists():
            shutil.copyfile(volume / name, draft / name)
    draft.rename(successor)
    shutil.rmtree(volume)
    return successor


def _volumes(home: Path, pod: str) -> list[PodVolume]:
    parts = [pod_volume(path.name) for path in home.iterdir() if path.is_dir()]
    return [part for part in parts if part is not None and part.pod == pod]

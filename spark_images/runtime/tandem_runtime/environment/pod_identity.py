"""The pod that this process runs in: who it is, and where its mounts are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tandem_core.model import kubernetes_names

ROOT_VARIABLE = "TANDEM_ROOT"
"""Names the directory that stands for the root of a pod's file system, where that is another."""


class PodIdentity(NamedTuple):
    """What the downward API says, and the root of the file system."""

    name: str
    uid: str
    namespace: str
    node: str
    host: str
    root: Path

    @property
    def document(self) -> Path:
        """The pipeline's manifest and uid."""
        return self.root / kubernetes_names.PIPELINE_FILE

    @property
    def token(self) -> Path:
        """What every call between the pipeline's pods carries."""
        return self.root / kubernetes_names.TOKEN_FILE

    @property
    def home(self) -> Path:
        """What is kept for the life of the pod: its volumes, one after the other."""
        return self.root / kubernetes_names.VOLUME_MOUNT

    @property
    def termination_log(self) -> Path:
        """What is written here is told as the reason why a container ended."""
        return self.root / kubernetes_names.TERMINATION_FILE


def this_pod(environment: Mapping[str, str] = os.environ) -> PodIdentity:
    """Read the environment of a pod's process.

    Raises:
        KeyError: this is no pod of a pipeline.
    """
    return PodIdentity(
        name=environment[kubernetes_names.POD_NAME_VARIABLE],
        uid=environment[kubernetes_names.POD_UID_VARIABLE],
        namespace=environment[kubernetes_names.NAMESPACE_VARIABLE],
        node=environment[kubernetes_names.NODE_VARIABLE],
        host=environment[kubernetes_names.POD_IP_VARIABLE],
        root=Path(environment.get(ROOT_VARIABLE, "/")),
    )

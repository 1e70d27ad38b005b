"""The pod that this process runs in: its identity, and the paths of its mounts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tandem_core.model import kubernetes_names

ROOT_VARIABLE = "TANDEM_ROOT"
"""Names a directory that replaces the root of the pod's file system."""


class PodIdentity(NamedTuple):
    """The values of the downward API, and the root of the file system."""

    name: str
    uid: str
    namespace: str
    node: str
    host: str
    root: Path

    @property
    def document(self) -> Path:
        """The file with the pipeline's manifest and uid."""
        return self.root / kubernetes_names.PIPELINE_FILE

    @property
    def token(self) -> Path:
        """The file with the token that every call between the pipeline's pods carries."""
        return self.root / kubernetes_names.TOKEN_FILE

    @property
    def home(self) -> Path:
        """The directory kept for the life of the pod; holds its volumes, one after the other."""
        return self.root / kubernetes_names.VOLUME_MOUNT

    @property
    def termination_log(self) -> Path:
        """The file whose text Kubernetes reports as the reason why a container ended."""
        return self.root / kubernetes_names.TERMINATION_FILE


def this_pod(environment: Mapping[str, str] = os.environ) -> PodIdentity:
    """Read the environment of a pod's process.

    Raises:
        KeyError: this is not a pod of a pipeline.
    """
    return PodIdentity(
        name=environment[kubernetes_names.POD_NAME_VARIABLE],
        uid=environment[kubernetes_names.POD_UID_VARIABLE],
        namespace=environment[kubernetes_names.NAMESPACE_VARIABLE],
        node=environment[kubernetes_names.NODE_VARIABLE],
        host=environment[kubernetes_names.POD_IP_VARIABLE],
        root=Path(environment.get(ROOT_VARIABLE, "/")),
    )

"""Chooses the base image of the project's own images."""

from __future__ import annotations

from cluster.debian import debian_image
from cluster.engine import ContainerEngine
from cluster.pulling import can_pull
from cluster.versions import PUBLISHED_BASE


def base_image(engine: ContainerEngine) -> str:
    """Return Python's published image, or build its equivalent from Debian packages.

    Raises:
        StepFailed: it cannot be built.
    """
    if can_pull():
        return PUBLISHED_BASE
    return debian_image(engine, "tandem-base", ["python3", "ca-certificates"])

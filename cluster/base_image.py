"""What the project's own images are built on."""

from __future__ import annotations

from cluster.debian import debian_image
from cluster.engine import Engine
from cluster.pulling import can_pull
from cluster.versions import PUBLISHED_BASE


def base_image(engine: Engine) -> str:
    """Give the published image of Python, or one of the same from Debian packages.

    Raises:
        StepFailed: it cannot be made.
    """
    if can_pull():
        return PUBLISHED_BASE
    return debian_image(engine, "tandem-base", ["python3", "ca-certificates"])

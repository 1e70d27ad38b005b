"""Finds out whether images can be pulled on this machine."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from functools import cache

from cluster.steps import say

_REGISTRY = "https://registry-1.docker.io/v2/"
_PATIENCE = 5.0


@cache
def can_pull() -> bool:
    """Whether images can be pulled, checked once; if set, TANDEM_PULL (1 or 0) decides."""
    told = os.environ.get("TANDEM_PULL")
    if told:
        return told != "0"
    if _answers():
        return True
    say(
        "images cannot be pulled here; everything is built from packages instead, which "
        "takes long the first time (TANDEM_PULL=1 to pull anyway)"
    )
    return False


def _answers() -> bool:
    """Whether the public registry answers; without credentials it answers 401."""
    try:
        with urllib.request.urlopen(_REGISTRY, timeout=_PATIENCE):
            return True
    except urllib.error.HTTPError as answer:
        return answer.code == 401  # noqa: PLR2004
    except OSError:
        return False

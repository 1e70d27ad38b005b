"""How the members of a pipeline are called when somebody means one of them."""

from collections.abc import Sequence

from tandem_core.model.fields.problems import suggestion

LEAD = "lead"
"""Whichever split leads."""


class Missing(Exception):
    """There is no such pipeline or member; the message says which there are."""


def nobody(target: str, known: Sequence[str]) -> Missing:
    """Nobody is called so at the moment; the others are."""
    near = suggestion(target, known)
    return Missing(f"nobody is {target} at the moment{near} (targets are: {', '.join(known)})")

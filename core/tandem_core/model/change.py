"""Changes of a running pipeline: how a manifest wants them, and what its status shows of them."""

from enum import StrEnum

from tandem_core.model.fields.declarations import document, setting
from tandem_core.model.fields.kinds import Choice, DurationKind, Text, Whole
from tandem_core.model.fields.quantities import Duration
from tandem_core.model.states import ChangeStage

LEAST_SURGE = 2
"""A split replaces one pair by two, so fewer new pairs at a time make no progress."""
MOST_REASON = 1_024
"""Bound on the length of a reason in the status."""

_COUNT = Whole(0)
_TIME = Text("a time in UTC, ISO 8601", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", 40)
_TEXT = Text("a text or nothing", r"(?s).*", longest=MOST_REASON)


class CarriedState(StrEnum):
    """What becomes of the state of pairs that are replaced."""

    CARRY = "carry"
    DROP = "drop"


@document
class ChangeSpec:
    """How a running pipeline is changed."""

    max_surge: int = setting(
        Whole(1, 1024),
        default=LEAST_SURGE,
        doc="New pairs that are built at a time; at least 2, since a pair is split into two. A "
        "larger change is made in several steps. A move of keys builds all pairs that it touches "
        "at once.",
    )
    timeout: Duration = setting(
        DurationKind(Duration(1_000), Duration(86_400_000)),
        default=Duration(600_000),
        doc="How long each stage before the cut may take; then the change is abandoned.",
    )
    state: CarriedState = setting(
        Choice(CarriedState),
        default=CarriedState.CARRY,
        doc="`carry` moves the state of the replaced pairs to the new ones. `drop`, which starts "
        "them empty, is not supported yet.",
    )


@document
class ChangeStatus:
    """The change of pairs under way, or the last one if it was abandoned."""

    target: int = setting(_COUNT, default=0, doc="Generation that is built.")
    stage: ChangeStage = setting(Choice(ChangeStage), doc="Stage of the change.")
    reason: str = setting(_TEXT, default="", doc="What it waits for, or why it was abandoned.")
    progress: str = setting(_TEXT, default="", doc="Progress, such as `3 of 4 replicas synced`.")
    since: str = setting(_TIME, doc="Time at which the change began.")


@document
class PastChangeStatus:
    """A change of pairs that has ended."""

    generation: int = setting(_COUNT, doc="Generation that it built.")
    pairs_before: int = setting(_COUNT, doc="Number of pairs before it.")
    pairs_after: int = setting(_COUNT, doc="Number of pairs after it.")
    began: str = setting(_TIME, doc="Time at which it began.")
    ended: str = setting(_TIME, doc="Time at which it ended.")
    moved_keys: int = setting(_COUNT, default=0, doc="Number of keys that it moved by hand.")
    abandoned: str = setting(_TEXT, default="", doc="Why it was abandoned; empty if it was not.")

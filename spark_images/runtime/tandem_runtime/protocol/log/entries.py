"""Entries of the header log: headers and records. Every decision of the data plane is one."""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_core.contract.records import Tagged
from tandem_runtime.protocol.types import Dealing, Header, LaneId, Note

NEWEST_FORMAT = 1
"""The newest format of the header log that this build reads and may write (`formats.py`)."""


class LaneOpened(Tagged):
    """A lane takes rows from now on. The order of these records is the order of the lanes."""

    lane: LaneId
    buddy: str | None


class BuddyChanged(Tagged):
    """A lane's second copy is elsewhere from now on; `view` counts these changes."""

    lane: LaneId
    view: int
    buddy: str | None


class LaneClosing(Tagged):
    """The lead determines the lane's end; the buddy refuses copies and cannot change."""

    lane: LaneId


class LaneResumed(Tagged):
    """Closing was cancelled: the owner answered, the buddy did not."""

    lane: LaneId


class LaneClosed(Tagged):
    """The lane ends with chunk `last`; the notes are of those chunks that no header covers."""

    lane: LaneId
    last: int
    notes: tuple[tuple[int, Note], ...]
    alone: bool = False
    """Reported by the owner only: the recorded buddy may lack the last chunks."""


class PartitionOwned(Tagged):
    """A source partition is read into this lane, from its position in the last header on."""

    partition: str
    lane: LaneId


class Seated(Tagged):
    """A replica's volume takes a seat and holds the trim point of this moment."""

    pair: str
    seat: int
    volume: str


class Verified(Tagged):
    """The holder on a seat has the pair's state at `epoch`: a full member from now on."""

    pair: str
    seat: int
    volume: str
    epoch: int


class Vacated(Tagged):
    """A seat is empty: its volume is gone, or the lead removed it."""

    pair: str
    seat: int
    volume: str
    why: str


class LapseCalled(Tagged):
    """A lane is full and this seat is behind: it lapses once its twin knows that it is alone.

    Without this step a twin that died unnoticed would take the pair's state with it.
    """

    pair: str
    seat: int
    volume: str


class LapseDropped(Tagged):
    """The call to lapse is cancelled before the twin has answered: the seat stays as it was."""

    pair: str
    seat: int
    volume: str


class Lapsed(Tagged):
    """Trimming no longer waits for this seat; its holder has to join again."""

    pair: str
    seat: int
    volume: str


class Trimmed(Tagged):
    """Every seat that has not lapsed has committed, and every sink has, through this epoch."""

    epoch: int


class MergeChosen(Tagged):
    """This merge delivers for its slot from now on."""

    slot: int
    volume: str


class SlotOpened(Tagged):
    """A merge slot delivers from this epoch on. Its number was never used before."""

    slot: int
    first: int
    intent_version: int


class SlotEnded(Tagged):
    """A merge slot delivers through this epoch, the last that is cut, and then no more."""

    slot: int
    last: int
    intent_version: int


class SlotSealed(Tagged):
    """Every sink has sealed an ended slot at its last epoch: it can be forgotten."""

    slot: int


class PairsDealt(Tagged):
    """Which slot delivers which pairs, for the headers that follow."""

    dealing: Dealing


class GenerationKnown(Tagged):
    """A generation may be built; headers may name it once the intent makes it the target."""

    generation: Generation
    intent_version: int


class GenerationGivenUp(Tagged):
    """A generation that no header named is abandoned; its pairs exit."""

    number: int
    intent_version: int


class RetirementCalled(Tagged):
    """Older pairs retire once every current replica has reported after this record."""


class PairsRetired(Tagged):
    """Pairs of an older generation are no longer needed; they exit."""

    pairs: tuple[str, ...]


class FormatRaised(Tagged):
    """Every member reads this format of the log: it may be written from now on."""

    format: int


class DataLost(Tagged):
    """Acknowledged data cannot be delivered. Recorded once for each subject."""

    subject: str
    why: str


class Completed(Tagged):
    """Everything is delivered: all members stop."""


Entry = (
    Header
    | LaneOpened
    | BuddyChanged
    | LaneClosing
    | LaneResumed
    | LaneClosed
    | PartitionOwned
    | Seated
    | Verified
    | Vacated
    | LapseCalled
    | LapseDropped
    | Lapsed
    | Trimmed
    | MergeChosen
    | SlotOpened
    | SlotEnded
    | SlotSealed
    | PairsDealt
    | GenerationKnown
    | GenerationGivenUp
    | RetirementCalled
    | PairsRetired
    | FormatRaised
    | DataLost
    | Completed
)

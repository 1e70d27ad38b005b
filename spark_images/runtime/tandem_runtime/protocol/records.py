"""Entries of the header log: headers and records. The one place where the data plane decides."""

from __future__ import annotations

from typing import NamedTuple

from tandem_runtime.protocol.data import Generation, Header, LaneId, Note


class LaneOpened(NamedTuple):
    """A lane takes rows from now on. The order of these records is the order of the lanes."""

    lane: LaneId
    buddy: str | None


class BuddyChanged(NamedTuple):
    """A lane's second copy is elsewhere from now on; `view` counts these changes."""

    lane: LaneId
    view: int
    buddy: str | None


class LaneClosing(NamedTuple):
    """The lane's end is being found out; its buddy refuses copies, its buddy cannot change."""

    lane: LaneId


class LaneResumed(NamedTuple):
    """Closing was cancelled: the owner answered, the buddy did not."""

    lane: LaneId


class LaneClosed(NamedTuple):
    """The lane ends with chunk `last`; the notes are of those chunks that no header covers."""

    lane: LaneId
    last: int
    notes: tuple[tuple[int, Note], ...]
    alone: bool = False
    """By the owner's word only: the recorded buddy need not have its last chunks."""


class PartitionOwned(NamedTuple):
    """A source partition is read into this lane, from its position in the last header on."""

    partition: str
    lane: LaneId


class Seated(NamedTuple):
    """A replica's volume takes a seat and holds the trim point of this moment."""

    pair: str
    seat: int
    volume: str


class Verified(NamedTuple):
    """The holder on a seat has the pair's state at `epoch`: a full member from now on."""

    pair: str
    seat: int
    volume: str
    epoch: int


class Vacated(NamedTuple):
    """A seat is empty: its volume is gone, or it was struck."""

    pair: str
    seat: int
    volume: str
    why: str


class LapseCalled(NamedTuple):
    """A lane is full and this seat is behind: it lapses once its twin knows that it is alone.

    Without this step a twin that died unnoticed would take the pair's state with it.
    """

    pair: str
    seat: int
    volume: str


class LapseDropped(NamedTuple):
    """There is room again before the twin has answered: everything stays as it was."""

    pair: str
    seat: int
    volume: str


class Lapsed(NamedTuple):
    """Trimming no longer waits for this seat; its holder has to join again."""

    pair: str
    seat: int
    volume: str


class Trimmed(NamedTuple):
    """Every seat that has not lapsed has committed, and every sink has, through this epoch."""

    epoch: int


class MergeChosen(NamedTuple):
    """This merge delivers for its slot from now on."""

    slot: int
    volume: str


class GenerationKnown(NamedTuple):
    """A generation may be built; headers may name it once the intent makes it the target."""

    generation: Generation
    intent_version: int


class GenerationGivenUp(NamedTuple):
    """A generation that no header named will never be; its pairs let go."""

    number: int
    intent_version: int


class RetirementCalled(NamedTuple):
    """Older pairs retire once every current replica has shown that it lives after this."""


class PairsRetired(NamedTuple):
    """Pairs of an older generation are no longer needed; they let go."""

    pairs: tuple[str, ...]


class DataLost(NamedTuple):
    """Something acknowledged cannot be delivered. Said once for each subject."""

    subject: str
    why: str


class Completed(NamedTuple):
    """Everything is delivered: everybody stops."""


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
    | GenerationKnown
    | GenerationGivenUp
    | RetirementCalled
    | PairsRetired
    | DataLost
    | Completed
)

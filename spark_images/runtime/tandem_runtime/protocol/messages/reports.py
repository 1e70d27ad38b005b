"""What members report to the lead, and its views for them.

Both are cumulative and carry a number, so that losing, repeating or reordering them is harmless
[11].
"""

from __future__ import annotations

from enum import StrEnum

from tandem_core.contract.intent import Generation
from tandem_core.contract.records import Record, Tagged
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import Dealing, Header, LaneId, Mark, Note, RegisterState, Slot

Version = tuple[int, int]
"""Term and index of the last published entry that a view knows of."""


class LaneReport(Record):
    """A lane as its owner knows it: sealed through, and the notes the lead has not seen yet."""

    lane: LaneId
    through: int
    notes: tuple[tuple[int, Note], ...]
    live: bool
    """False for a lane of an earlier process, or one that its owner has ended."""
    ask: tuple[int, str | None] | None
    """The buddy wanted, with the number of that change."""
    over_bound: bool
    stuck: bool
    """Full without having been trimmed: for longer than an epoch takes, and for much longer."""


class SealedCopy(Record):
    """A copy that its holder has sealed for closing, with the chunks no header covers yet."""

    lane: LaneId
    view: int
    through: int
    notes: tuple[tuple[int, Note], ...]


class SplitReport(Tagged):
    """A split to the lead."""

    sequence: int
    lanes: tuple[LaneReport, ...]
    opening: tuple[LaneId, str | None] | None
    sealed: tuple[SealedCopy, ...]
    copies: tuple[tuple[LaneId, int], ...]
    leaving: bool
    lost: tuple[str, ...]
    """Source partitions that cannot give the rows that are needed."""
    format: int = 1
    """The newest format of the header log that it reads."""


class LaneView(Record):
    """A lane as the header log knows it."""

    lane: LaneId
    buddy: str | None
    view: int
    state: LaneState
    reach: int
    last: int
    trimmed: int


class Owned(Record):
    """A source partition, the lane it is read into, from where, and for the how-manieth time."""

    partition: str
    lane: LaneId
    mark: Mark
    tenure: int


class SplitView(Tagged):
    """The lead to a split."""

    version: Version
    lanes: tuple[LaneView, ...]
    forgotten: tuple[LaneId, ...]
    """Lanes the split reported that are over: no reader will ever ask for them."""
    owned: tuple[Owned, ...]
    release: tuple[str, ...]
    opened: int
    """Highest number of a lane of this split that was ever recorded."""
    leaving: tuple[str, ...]
    streams: tuple[tuple[str, int | None], ...]
    """Source partitions with their stream's idle timeout."""
    completed: bool
    at_risk: bool
    """Rows that are still needed would be lost with one more split."""


class ReplicaReport(Tagged):
    """A replica to the lead: registers it, acknowledges, and asks for headers."""

    sequence: int
    pair: str
    committed: int
    verified: bool
    fresh: bool
    """The volume holds no state yet, so it may take a seat."""
    have: int
    """The highest header it knows."""
    calls: int
    """Calls it was told of: it lived when the log already held them."""
    format: int = 1
    """The newest format of the header log that it reads."""
    committed_digest: str = ""
    have_digest: str = ""
    """Digests of these two headers: the numbers alone do not tell of which history they are."""


class Standing(StrEnum):
    """What a replica is to its pair, as the lead tells it."""

    WAITING = "waiting"
    SEATED = "seated"
    DISPLACED = "displaced"
    """Its state counts no more: it starts again on an empty volume."""
    RETIRED = "retired"
    COMPLETED = "completed"


class ReplicaView(Tagged):
    """The lead to a replica."""

    version: Version
    standing: Standing
    source: tuple[tuple[str, ...], ...]
    """Where to copy state from: one group of volumes for each pair to copy from.

    For a replica with state: its twin, if that is so far ahead that copying is quicker.
    """
    source_epoch: int | None
    """The epoch to copy at; None for the survivor's last committed one."""
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    lanes: tuple[tuple[LaneId, tuple[str, ...]], ...]
    trim: int
    delivered: int
    merges: tuple[str, ...]
    """The active merges of the slots that deliver for its pair."""
    calls: int
    """How many calls the log holds, to be told back."""
    format: int = 1
    """Of the header log: a rebuild must not go back behind it."""


class MergeReport(Tagged):
    """A merge to the lead."""

    sequence: int
    slot: int
    delivered: int
    have: int
    differing: tuple[tuple[str, int, str], ...]
    """Twins that disagreed: pair, epoch, volume of the one to be rebuilt."""
    leaving: bool
    format: int = 1
    """The newest format of the header log that it reads."""
    delivered_digest: str = ""
    """Of the header of the delivered epoch, if it knows it."""
    sealed: tuple[int, ...] = ()
    """Slots that every sink has sealed; its own already if some sink has."""


class MergeView(Tagged):
    """The lead to a merge."""

    version: Version
    active: bool
    delivered: int
    """Every slot has delivered through this epoch."""
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    holders: tuple[tuple[str, tuple[str, ...]], ...]
    primaries: tuple[tuple[str, str], ...]
    completed: bool
    recorded: int = 0
    """How far the merge's own slot was heard to have delivered."""
    slots: tuple[Slot, ...] = ()
    next_slot: int = 0
    dealings: tuple[Dealing, ...] = ()
    """Those that the headers name, and the newest."""
    format: int = 1
    """Of the header log: a rebuild must not go back behind it."""


class NotLead(Tagged):
    """A split that does not lead: this is who does, as far as I know."""

    place: RegisterState


class Outdated(Tagged):
    """The lead to a member that does not read the header log's format: it cannot take part."""

    format: int

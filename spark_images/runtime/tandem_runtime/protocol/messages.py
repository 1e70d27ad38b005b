"""What processes tell each other, and what a shell tells a machine.

Splits, replicas and merges *report* their whole state to the lead; the lead answers with its
whole *view* for that one. Both are cumulative and carry a number, so that losing, repeating or
reordering them is harmless [11]. A message with a `payload` carries bytes (`effects.Ship`).
"""

from __future__ import annotations

from typing import NamedTuple

from tandem_runtime.protocol.book import Book
from tandem_runtime.protocol.data import (
    Generation,
    Header,
    Intent,
    LaneId,
    Mark,
    Member,
    Note,
    Place,
    Position,
    Span,
)
from tandem_runtime.protocol.records import Entry

Version = tuple[int, int]
"""Term and index of the last published entry that a view knows of."""

# --- between the owner of a log and its buddy -------------------------------------------------


class CopyChunk(NamedTuple):
    """Owner to buddy: chunk `number` of a lane; `base` is what the lane has forgotten.

    `version` is of the newest view the owner knows: an older view, of a deposed lead that does
    not know this lane yet, must not make the buddy forget it.
    """

    lane: LaneId
    fence: tuple[int, int]
    version: Version
    base: int
    number: int
    payload: object = None


class ChunkCopied(NamedTuple):
    """Buddy to owner: I hold the lane through this chunk."""

    lane: LaneId
    fence: tuple[int, int]
    through: int


class FillLog(NamedTuple):
    """Lead to a new buddy: the header log's snapshot, which replaces whatever is there."""

    fence: tuple[int, int]
    through: int
    book: Book


class CopyEntry(NamedTuple):
    """Lead to buddy: entry `number` of the header log; number 0 is a sign of life."""

    fence: tuple[int, int]
    number: int
    entry: Entry | None
    published: int


class EntryCopied(NamedTuple):
    """Buddy to lead: I hold the header log through this entry."""

    fence: tuple[int, int]
    through: int


class NeedFill(NamedTuple):
    """Buddy to lead: I have no copy under this fence."""

    fence: tuple[int, int]


class Deposed(NamedTuple):
    """Whoever knows a higher term, to a lead of a lower one."""

    term: int


class TakeLead(NamedTuple):
    """A lead that leaves, to its buddy: take over now."""

    term: int


# --- reports and views ------------------------------------------------------------------------


class LaneReport(NamedTuple):
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


class SealedCopy(NamedTuple):
    """A copy that its holder has sealed for closing, with the chunks no header covers yet."""

    lane: LaneId
    view: int
    through: int
    notes: tuple[tuple[int, Note], ...]


class SplitReport(NamedTuple):
    """A split to the lead."""

    sequence: int
    lanes: tuple[LaneReport, ...]
    opening: tuple[LaneId, str | None] | None
    sealed: tuple[SealedCopy, ...]
    copies: tuple[tuple[LaneId, int], ...]
    leaving: bool
    lost: tuple[str, ...]
    """Source partitions that cannot give the rows that are needed."""


class LaneView(NamedTuple):
    """A lane as the header log knows it."""

    lane: LaneId
    buddy: str | None
    view: int
    state: str
    reach: int
    last: int
    trimmed: int


class Owned(NamedTuple):
    """A source partition, the lane it is read into, from where, and for the how-manieth time."""

    partition: str
    lane: LaneId
    mark: Mark
    tenure: int


class SplitView(NamedTuple):
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


class ReplicaReport(NamedTuple):
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


class ReplicaView(NamedTuple):
    """The lead to a replica."""

    version: Version
    standing: str
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
    calls: int
    """How many calls the log holds, to be told back."""


WAITING, SEATED, DISPLACED = "waiting", "seated", "displaced"
RETIRED, COMPLETED = "retired", "completed"
"""Standings of a replica."""


class MergeReport(NamedTuple):
    """A merge to the lead."""

    sequence: int
    slot: int
    delivered: int
    have: int
    differing: tuple[tuple[str, int, str], ...]
    """Twins that disagreed: pair, epoch, volume of the one to be rebuilt."""
    leaving: bool


class MergeView(NamedTuple):
    """The lead to a merge."""

    version: Version
    active: bool
    delivered: int
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    holders: tuple[tuple[str, tuple[str, ...]], ...]
    primaries: tuple[tuple[str, str], ...]
    completed: bool


class NotLead(NamedTuple):
    """A split that does not lead: this is who does, as far as I know."""

    place: Place


# --- rows and results -------------------------------------------------------------------------


class Fetch(NamedTuple):
    """Replica to a split: these chunks, as far as they concern my keys."""

    span: Span
    keys: object


ROWS, NO_ROWS, NOT_YET, GONE, NOT_HERE = "rows", "no rows", "not yet", "gone", "not here"
"""The five answers to a fetch."""


class Fetched(NamedTuple):
    """A split to a replica. With `ROWS` the payload holds a value for each chunk of the span."""

    span: Span
    answer: str
    payload: object = None


class CopyState(NamedTuple):
    """A joiner to a holder: your state at this epoch (None: your last), as far as my keys go."""

    pair: str
    keys: object
    epoch: int | None


class StateCopied(NamedTuple):
    """A holder to a joiner. The payload: the checkpoint, the outbox, the state of `older` epochs.

    The epoch's header and generation come along: they stand in Spark's offset. Older state comes
    with a twin's whole tree: another pair may have to be built from it.
    """

    pair: str
    epoch: int
    header: Header | None
    generation: Generation | None
    outbox: tuple[tuple[int, int, int], ...]
    older: tuple[int, ...]
    payload: object = None


class CopyRefused(NamedTuple):
    """A holder to a joiner: not from me, or not at that epoch."""

    pair: str


class Offers(NamedTuple):
    """A replica to a merge: epochs in my outbox, as (epoch, size, digest)."""

    pair: str
    offers: tuple[tuple[int, int, int], ...]


class Want(NamedTuple):
    """A merge to a replica: which epochs I want now.

    How far is delivered, and what may be dropped, only the lead says: it knows every slot.
    """

    epochs: tuple[int, ...]


class Answer(NamedTuple):
    """A replica to a merge: its result of an epoch."""

    pair: str
    epoch: int
    digest: int
    payload: object = None


# --- from the shell ---------------------------------------------------------------------------


class RegisterAnswer(NamedTuple):
    """Answer to `Swap` or `ReadRegister`: did the swap happen, and what stands there now."""

    op: int
    swapped: bool
    place: Place


class SourceRows(NamedTuple):
    """Answer to `Pull`: rows from `position` up to `end`, in arrival order.

    `ended`: nothing comes after `end`. `forgotten`: the source no longer has `position`.
    `unreadable`: nobody can know now; the question stays open. `rejected`: how much was put aside.
    """

    partition: str
    position: Position
    end: Position
    size: int
    event_time: int
    ended: bool
    forgotten: bool
    payload: object = None
    rows: int = 0
    unreadable: bool = False
    rejected: int = 0


class BatchResult(NamedTuple):
    """Spark has computed an epoch: its result is about to be kept, nothing is committed yet."""

    epoch: int
    size: int
    digest: int
    payload: object = None


class BatchCommitted(NamedTuple):
    """Spark has committed an epoch: `("checkpoint", epoch)` is on the volume."""

    epoch: int


class SparkUp(NamedTuple):
    """Spark can be given epochs from now on."""


class Installed(NamedTuple):
    """Copied state has been verified and stands on the volume as an epoch's checkpoint."""

    epoch: int


class SinkPosition(NamedTuple):
    """Answer to `ReadPosition` and `Deliver`: the sink's position when it answered."""

    sink: str
    position: int
    op: int


class Splits(NamedTuple):
    """The splits that exist now, as discovery knows them."""

    members: tuple[Member, ...]


class NewIntent(NamedTuple):
    """The operator's document changed. It may come late, repeated, or in the wrong order."""

    intent: Intent


class VolumeGone(NamedTuple):
    """A volume is gone for good: no such pod, or on a laptop no such directory."""

    volume: str


class Terminate(NamedTuple):
    """The process is asked to leave in good order (SIGTERM)."""

"""Defines the reports of members to the lead, and the lead's views for them.

Both are complete and numbered, so that losing, repeating or reordering them is harmless [11].
"""

from __future__ import annotations

from enum import StrEnum

from tandem_core.contract.intent import Generation
from tandem_core.contract.records import Record, Tagged
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import Dealing, Header, LaneId, Mark, Note, RegisterState, Slot

Version = tuple[int, int]
"""Version of a view: term, and index of the last published entry that it includes."""


class LaneReport(Record):
    """State of a lane at its owner, with the notes that the lead has not seen yet."""

    lane: LaneId
    through: int
    notes: tuple[tuple[int, Note], ...]
    live: bool
    """False for a lane of an earlier incarnation, or one that its owner has ended."""
    ask: tuple[int, str | None] | None
    """Requested change of buddy, as (view number, buddy)."""
    over_bound: bool
    stuck: bool
    """`over_bound`: full and not trimmed for two epoch intervals; `stuck`: for `max_full`."""


class SealedCopy(Record):
    """Copy of a closing lane that its holder has sealed, with notes of chunks not in a header."""

    lane: LaneId
    view: int
    through: int
    notes: tuple[tuple[int, Note], ...]


class SplitReport(Tagged):
    """Split to lead: its lanes, its copies, and the lane it asks to open."""

    sequence: int
    lanes: tuple[LaneReport, ...]
    opening: tuple[LaneId, str | None] | None
    sealed: tuple[SealedCopy, ...]
    copies: tuple[tuple[LaneId, int], ...]
    leaving: bool
    lost: tuple[str, ...]
    """Source partitions that can no longer return rows that are needed."""
    format: int = 1
    """Newest format of the header log that it reads."""
    name: str = ""
    """Its stable name, by which the intent places source partitions; an older split gives none."""


class LaneView(Record):
    """Lane as recorded in the header log."""

    lane: LaneId
    buddy: str | None
    view: int
    state: LaneState
    reach: int
    last: int
    trimmed: int


class Owned(Record):
    """Assignment of a source partition to a lane: where to start, and how often it was assigned."""

    partition: str
    lane: LaneId
    mark: Mark
    tenure: int


class SplitView(Tagged):
    """Lead to split: its lanes and copies, and the partitions that it reads."""

    version: Version
    lanes: tuple[LaneView, ...]
    forgotten: tuple[LaneId, ...]
    """Lanes of its report that the header log no longer has; their chunks may be deleted."""
    owned: tuple[Owned, ...]
    release: tuple[str, ...]
    opened: int
    """Highest lane number ever recorded for this split."""
    leaving: tuple[str, ...]
    streams: tuple[tuple[str, int | None], ...]
    """Source partitions, each with the idle timeout of its stream."""
    completed: bool
    at_risk: bool
    """Whether the loss of one more split would lose rows that are still needed."""


class ReplicaReport(Tagged):
    """Replica to lead: registers it, acknowledges epochs, and requests headers."""

    sequence: int
    pair: str
    committed: int
    verified: bool
    fresh: bool
    """Whether the volume has no state yet, so that it may take a seat."""
    have: int
    """Epoch of the last header that it has."""
    calls: int
    """Calls up to this number have reached it: it ran after the log recorded them."""
    format: int = 1
    """Newest format of the header log that it reads."""
    committed_digest: str = ""
    have_digest: str = ""
    """Digests of the headers `committed` and `have`, which identify their history."""
    building: int | None = None
    """The epoch at which it copies the state of its pair's parents; None if it does not."""


class Standing(StrEnum):
    """Standing of a replica in its pair, decided by the lead."""

    WAITING = "waiting"
    SEATED = "seated"
    DISPLACED = "displaced"
    """Its state is obsolete: it restarts on an empty volume."""
    RETIRED = "retired"
    COMPLETED = "completed"


class ReplicaView(Tagged):
    """Lead to replica: its standing, where to copy state from, and the next headers."""

    version: Version
    standing: Standing
    source: tuple[tuple[str, ...], ...]
    """Volumes to copy state from, one group for each pair to copy.

    For a replica with state: its twin, if that is so far ahead that copying is faster.
    """
    source_epoch: int | None
    """Epoch to copy at; None for the last one that the twin has committed."""
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    lanes: tuple[tuple[LaneId, tuple[str, ...]], ...]
    trim: int
    delivered: int
    merges: tuple[str, ...]
    """Active merges of the slots that deliver its pair."""
    calls: int
    """Number of the last call in the log; the replica reports it back."""
    format: int = 1
    """Format of the header log; a rebuild must not use an older one."""
    pins: tuple[int, ...] = ()
    """Epochs that a new pair copies or may copy: their state, and later ones, are kept."""


class MergeReport(Tagged):
    """Merge to lead: how far its slot has delivered, and the headers it has."""

    sequence: int
    slot: int
    delivered: int
    have: int
    differing: tuple[tuple[str, int, str], ...]
    """Diverged replicas, as (pair, epoch, volume); each has to be rebuilt."""
    leaving: bool
    format: int = 1
    """Newest format of the header log that it reads."""
    delivered_digest: str = ""
    """Digest of the header of the delivered epoch, if the merge has it."""
    sealed: tuple[int, ...] = ()
    """Slots that every sink has sealed; its own slot as soon as any sink has."""


class MergeView(Tagged):
    """Lead to merge: whether it is active, the next headers, and which replicas may answer."""

    version: Version
    active: bool
    delivered: int
    """Last epoch that every slot has delivered."""
    headers: tuple[Header, ...]
    generations: tuple[Generation, ...]
    holders: tuple[tuple[str, tuple[str, ...]], ...]
    primaries: tuple[tuple[str, str], ...]
    completed: bool
    recorded: int = 0
    """Last epoch that the merge's own slot is reported to have delivered."""
    slots: tuple[Slot, ...] = ()
    next_slot: int = 0
    dealings: tuple[Dealing, ...] = ()
    """Dealings that `headers` name, and the newest."""
    format: int = 1
    """Format of the header log; a rebuild must not use an older one."""


class NotLead(Tagged):
    """Answer of a split that does not lead: the register as it knows it."""

    place: RegisterState


class Outdated(Tagged):
    """Lead to member: it cannot take part, since it does not read the header log's format."""

    format: int

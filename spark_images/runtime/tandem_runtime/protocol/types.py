"""The values that the machines keep and exchange."""

from __future__ import annotations

from typing import NamedTuple

from tandem_core.contract.records import Record, Tagged
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.states import CALLED, JOINING, LaneState, PartitionState, SlotState

END_OF_TIME = 2**62
"""Watermark of a stream whose source partitions have all ended: every window closes."""

BEGINNING_OF_TIME = -(2**62)
"""Watermark of a stream of which some source partition has not shown a row yet."""


_SLOT_OPEN, _LAPSED = SlotState.OPEN, SeatState.LAPSED
"""Members at hand: looking one up on its class takes long in hot loops."""


class Peer(Record, order=True):
    """Where a message came from: a volume, and which process start on it."""

    volume: str
    incarnation: int


class RegisterState(Record):
    """Content of the register. Every swap raises the version, every new lead the term.

    Whoever swaps writes itself as lead, so the content tells who wrote it [10].
    """

    version: int
    term: int
    lead: str
    buddy: str | None


NOBODY = RegisterState(0, 0, "", None)
"""The register before the first split wrote it."""


class LaneId(Record, order=True):
    """A lane: the n-th log of chunks of one split's volume."""

    split: str
    number: int


Position = int | str | tuple[int | str | None, ...]
"""A place in a source partition, in its own terms; 0 is the beginning. Only compared for equality:
a source knows what comes after what."""


class Mark(Record):
    """How far a source partition has been read, and what its owner says of it."""

    position: Position
    event_time: int
    state: PartitionState = PartitionState.ACTIVE
    rows: int = 0
    """Rows taken in since the beginning, whoever owned the partition."""
    rejected: int = 0
    """Rows and files put aside since the beginning, likewise."""


class Note(Record):
    """What the lead needs to know of a chunk: its size and where it leaves each partition."""

    size: int
    marks: tuple[tuple[str, Mark], ...]


class Segment(Record):
    """Rows of one source partition that follow each other, as its source gave them."""

    partition: str
    position: Position
    """Where the first one stands."""
    ordinal: int
    """Rows of the partition before the first one, whoever took them in: what rows are ordered by,
    since positions are the source's own terms."""
    rows: int
    payload: object
    """The rows; the protocol never looks into them."""


class Chunk(Record):
    """A sealed chunk as it lies on a volume.

    The payload: a tuple of segments where it is sealed, its bytes where it is copied.
    """

    note: Note
    payload: object


class Span(Record, order=True):
    """The chunks of one lane in one epoch, both ends included."""

    lane: LaneId
    first: int
    last: int


UNDIVIDED = 0
"""The dealing that needs no record: slot 0 alone is open and delivers every pair."""


class Dealing(Record):
    """Which merge slot delivers which pairs, as (slot, pairs); every slot that was open is named.

    It deals the pairs of the generation of its time and of those that may follow it.
    """

    number: int
    slots: tuple[tuple[int, tuple[str, ...]], ...]

    def pairs_of(self, slot: int) -> tuple[str, ...]:
        """The pairs of one slot."""
        return next((pairs for number, pairs in self.slots if number == slot), ())


class Slot(Record):
    """A merge slot: it delivers the epochs from `first` on, through `last` once it has ended."""

    number: int
    first: int
    state: SlotState = SlotState.OPEN
    last: int = 0

    @property
    def is_open(self) -> bool:
        """Does it deliver epochs to come?"""
        return self.state is _SLOT_OPEN

    def ended_at(self, last: int) -> Slot:
        """The same slot, which delivers no epoch after this one."""
        return self.replace(state=SlotState.ENDED, last=last)

    def delivers(self, epoch: int) -> bool:
        """May it deliver an epoch, as far as its end goes?"""
        return self.state is _SLOT_OPEN or epoch <= self.last


class Lane(Record):
    """A lane as recorded."""

    buddy: str | None
    view: int = 1
    state: LaneState = LaneState.OPEN
    reach: int = 0
    """Headers cover it through this chunk."""
    last: int = 0
    """Its last chunk, once closed."""
    trimmed: int = 0
    """Forgotten through this chunk."""
    notes: tuple[tuple[int, Note], ...] = ()
    """Once closed: the notes of chunks that no header covered then."""


class Seat(Record):
    """One of the two places of a pair and who holds it."""

    volume: str
    hold: int
    """The epoch it holds the trim point at until it acknowledges a higher one."""
    state: SeatState = SeatState.JOINING
    call: int = 0
    """Number of the call to lapse, while it is called."""

    @property
    def verified(self) -> bool:
        """Is its holder a full member, even if one that may lapse soon?"""
        return self.state.is_full

    @property
    def lapsed(self) -> bool:
        """Does trimming not wait for it?"""
        return self.state is _LAPSED

    @property
    def called(self) -> bool:
        """Does it lapse once its twin has answered?"""
        return self.state in CALLED

    @property
    def joins(self) -> bool:
        """Has its holder no state that is known of?"""
        return self.state in JOINING


class Header(Tagged):
    """Closes an epoch: what it holds, who answers for it, and where time stands.

    It never changes once it is out [3]. `marks` and `watermarks` are complete, not changes, so
    that any header alone tells from where every source partition goes on. `previous` is the digest
    of the header that it continues: two histories may have the same epochs (`history.py`).
    """

    epoch: int
    generation: int
    spans: tuple[Span, ...]
    marks: tuple[tuple[str, Mark], ...]
    watermarks: tuple[tuple[str, int], ...]
    delivered: int
    final: bool = False
    term: int = 0
    """Of the lead that cut it."""
    previous: str = ""
    digest: str = ""
    """Made when it was cut, never computed from what was read."""
    dealing: int = UNDIVIDED
    """The dealing in force: it deals every pair of the generation to one slot."""
    barrier: bool = False
    """Keys may come from another slot: nobody delivers it before all slots have what precedes."""


class Member(Record, order=True):
    """A split as its peers find it: stable name, volume, node."""

    name: str
    volume: str
    node: str


class ProtocolSettings(NamedTuple):
    """Bounds and times, in bytes and in the unit of the shell's clock (milliseconds)."""

    interval: int = 500
    """Epoch interval: a header is cut at the latest after it, a chunk sealed after half of it."""
    silence: int = 1500
    """After this long without a word a member *tries* to go on without a peer (f)."""
    copy_silence: int = 1000
    """The same for a second copy that entries wait for: doing without it costs only a new fill."""
    max_epoch_bytes: int = 32 * 2**20
    """Most bytes one header may take in, but at least one chunk."""
    max_uncommitted: int = 2
    """K: epochs that the faster replica of a pair may be behind the last header.

    One runs, one is ready when it is done. Rows that would wait in further ones are better off in
    the lane: the next epoch takes them all at once.
    """
    max_undelivered: int = 8
    """Epochs a replica may run ahead of delivery: the bound of its outbox."""
    window: int = 8
    """Epochs beyond the delivered one that a merge accepts."""
    max_lane_bytes: int = 256 * 2**20
    """Bytes a lane keeps before it stops reading and asks for a lapse."""
    max_full: int = 30_000
    """How long a full lane waits for a replica that is behind but not silent."""
    max_chunk_bytes: int = 8 * 2**20
    """Bytes after which a chunk is sealed before the interval is over."""
    synced_within: int = 1
    """A replica this close to the last header is synced."""
    skips_beyond: int = 2
    """A replica that starts again this far behind its twin computes what it missed, one that is
    further behind copies its twin's state."""
    skip_patience: int = 10_000
    """How long it waits for that copy before it computes after all."""
    headers_per_view: int = 8
    """Most headers passed to a reader at once."""
    entries_before_snapshot: int = 24
    """Entries of the header log after which they are folded into its snapshot."""
    patience: int = 30_000
    """How long a rebuilt header log waits for holders that never answer, rule (i)."""

    @property
    def heartbeat_every(self) -> int:
        """How often peers hear of each other: several times in every silence."""
        return self.copy_silence // 4

    @property
    def beat(self) -> int:
        """How often machines are told the time: twice in an epoch, and in time to be heard."""
        return max(10, min(self.interval // 2, self.heartbeat_every))

    @property
    def retry(self) -> int:
        """How long an answer may take before it is asked for again: as long as a short epoch."""
        return min(max(self.interval, 200), self.silence // 3)

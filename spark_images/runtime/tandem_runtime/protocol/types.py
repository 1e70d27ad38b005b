"""Defines the values that the state machines store and exchange."""

from __future__ import annotations

from typing import NamedTuple

from tandem_core.contract.records import Record, Tagged
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.states import CALLED, JOINING, LaneState, PartitionState, SlotState

END_OF_TIME = 2**62
"""Watermark of a stream whose source partitions have all ended; it closes every window."""

BEGINNING_OF_TIME = -(2**62)
"""Watermark of a stream while one of its source partitions has not had a row yet."""


_SLOT_OPEN, _LAPSED = SlotState.OPEN, SeatState.LAPSED
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


class Peer(Record, order=True):
    """Sender of a message: a volume, and the incarnation of the process on it."""

    volume: str
    incarnation: int


class RegisterState(Record):
    """Content of the register. Every swap raises the version, every new lead the term.

    A split that swaps writes itself as lead, so the content identifies its writer [10].
    """

    version: int
    term: int
    lead: str
    buddy: str | None


NOBODY = RegisterState(0, 0, "", None)
"""The register before the first split wrote it."""


class Definition(Record):
    """What the state of a pair is: the same in all its replicas, for good.

    A field that an older version did not record is empty, and then not compared.
    """

    share: str = ""
    """Identity of the keys."""
    plan: str = ""
    """Digest of what the pair runs."""
    spark: str = ""
    """The version of Spark that made the state."""

    def difference(self, other: Definition, owner: str = "the other") -> str:
        """Returns what differs first, with both values; "" if nothing does.

        `owner` is whose definition the other one is.
        """
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine and theirs and mine != theirs:
                shown = _shown(name, mine), _shown(name, theirs)
                return f"{_OTHERS[name]} ({shown[0]}; {owner} has {shown[1]})"
        return ""


_OTHERS = {"share": "other keys", "plan": "another query", "spark": "another Spark version"}
_SHOWN = 8


def _shown(name: str, value: str) -> str:
    """The beginning of a digest; a version in full."""
    return value if name == "spark" else f"digest {value[:_SHOWN]}…"


UNDEFINED = Definition()
"""Nothing is known."""


class LaneId(Record, order=True):
    """Identifies a lane: the n-th log of chunks of one split's volume."""

    split: str
    number: int


Position = int | str | tuple[int | str | None, ...]
"""Place in a source partition, in the source's own format; 0 is the beginning. Positions are only
compared for equality: the source alone knows their order."""


class Mark(Record):
    """Position up to which a source partition has been read, and its state there."""

    position: Position
    event_time: int
    state: PartitionState = PartitionState.ACTIVE
    rows: int = 0
    """Rows read since the beginning, by all owners of the partition."""
    rejected: int = 0
    """Rows and files rejected since the beginning, by all owners of the partition."""


class Note(Record):
    """Metadata of a chunk for the lead: its size, and where it leaves each partition."""

    size: int
    marks: tuple[tuple[str, Mark], ...]


class Segment(Record):
    """Consecutive rows of one source partition, as its source returned them."""

    partition: str
    position: Position
    """Position of the first row."""
    ordinal: int
    """Number of rows of the partition before the first row, by all owners. Rows are ordered by it,
    because only the source can order positions."""
    rows: int
    payload: object
    """The rows; opaque to the protocol."""


class Chunk(Record):
    """Sealed chunk as stored on a volume.

    The payload is a tuple of segments at the owner of the lane, and their bytes at the buddy.
    """

    note: Note
    payload: object


class Span(Record, order=True):
    """Range of chunks of one lane in one epoch, both ends included."""

    lane: LaneId
    first: int
    last: int


UNDIVIDED = 0
"""Number of the implicit dealing: only slot 0 is open, and it delivers every pair."""


class Dealing(Record):
    """Assignment of pairs to merge slots, as (slot, pairs) of every slot that was open.

    It covers the pairs of the current generation and of generations that may follow it.
    """

    number: int
    slots: tuple[tuple[int, tuple[str, ...]], ...]

    def pairs_of(self, slot: int) -> tuple[str, ...]:
        """Returns the pairs of one slot."""
        return next((pairs for number, pairs in self.slots if number == slot), ())


class Slot(Record):
    """Merge slot. It delivers epochs from `first` on, and through `last` once it has ended."""

    number: int
    first: int
    state: SlotState = SlotState.OPEN
    last: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it delivers future epochs."""
        return self.state is _SLOT_OPEN

    def ended_at(self, last: int) -> Slot:
        """Returns the slot as ended: it delivers no epoch after `last`."""
        return self.replace(state=SlotState.ENDED, last=last)

    def delivers(self, epoch: int) -> bool:
        """Whether an epoch is not after the end of the slot."""
        return self.state is _SLOT_OPEN or epoch <= self.last


class Lane(Record):
    """Lane as recorded in the header log."""

    buddy: str | None
    view: int = 1
    state: LaneState = LaneState.OPEN
    reach: int = 0
    """Last chunk that a header covers."""
    last: int = 0
    """Last chunk of the lane, once it is closed."""
    trimmed: int = 0
    """Chunks through this one are trimmed."""
    notes: tuple[tuple[int, Note], ...] = ()
    """Once closed: notes of the chunks that no header covered at that time."""


class Seat(Record):
    """One of the two seats of a pair, with its holder."""

    volume: str
    hold: int
    """Epoch at which it holds the trim point until its holder reports a higher one."""
    state: SeatState = SeatState.JOINING
    call: int = 0
    """Number of the call to lapse, while one is open."""

    @property
    def verified(self) -> bool:
        """Whether its holder is a full member, even if it is called to lapse."""
        return self.state.is_full

    @property
    def lapsed(self) -> bool:
        """Whether trimming no longer waits for it."""
        return self.state is _LAPSED

    @property
    def called(self) -> bool:
        """Whether it lapses once its twin has answered the call."""
        return self.state in CALLED

    @property
    def joins(self) -> bool:
        """Whether its holder has no verified state yet."""
        return self.state in JOINING


class Header(Tagged):
    """Closes an epoch: its chunks, the generation that computes it, positions and watermarks.

    It is immutable once published [3]. `marks` and `watermarks` are complete, not deltas: any
    header alone defines where every source partition continues. `previous` is the digest of the
    preceding header: two histories may have the same epoch numbers (`history.py`).
    """

    epoch: int
    generation: int
    spans: tuple[Span, ...]
    marks: tuple[tuple[str, Mark], ...]
    watermarks: tuple[tuple[str, int], ...]
    delivered: int
    final: bool = False
    term: int = 0
    """Term of the lead that cut it."""
    previous: str = ""
    digest: str = ""
    """Computed once, when the header is cut; readers never recompute it."""
    dealing: int = UNDIVIDED
    """Dealing in force: it assigns every pair of the generation to one slot."""
    barrier: bool = False
    """Keys may have changed slots: it is delivered after every slot has delivered all before it."""


class Member(Record, order=True):
    """Split as its peers discover it: stable name, volume, node."""

    name: str
    volume: str
    node: str


class ProtocolSettings(NamedTuple):
    """Bounds in bytes, and times in the unit of the shell's clock (milliseconds).

    Each default says why it has this value, and on which others it depends (checked by
    `tests/protocol/test_types.py`). Those that name no ADR were chosen and not measured.
    """

    interval: int = 500
    """Epoch interval: a header is cut at the latest after it, a chunk sealed after half of it.

    The default of the manifest's `epoch.interval`, which replaces it.
    """
    silence: int = 1500
    """Heartbeat timeout: a member then *tries* to continue without the silent peer (f).

    Six heartbeats; the environment replaces it, with 2 s on a cluster. Above `copy_silence`: a
    mistaken change of the lead costs an epoch, a mistaken drop of a buddy only a copy (ADR 12).
    """
    copy_silence: int = 1000
    """Heartbeat timeout of a second copy that entries wait for: dropping it costs only a refill.

    Four heartbeats. Shorter than `silence`, since output waits for the copy (ADR 12).
    """
    max_epoch_bytes: int = 32 * 2**20
    """Upper bound of the bytes of one epoch, which has at least one chunk whatever its size.

    About the default of the manifest's `epoch.maxBytes`, which replaces it: four chunks.
    """
    max_uncommitted: int = 2
    """K: epochs that the faster replica of a pair may be behind the last header.

    One runs and one is ready to follow. Further rows stay in the lane, where the next epoch takes
    all of them at once: with four, a backlog became many small epochs (ADR 13).
    """
    max_undelivered: int = 8
    """Epochs that a replica may run ahead of delivery; bounds its outbox.

    Four times K: at the default interval drivers compute for four seconds without delivery, longer
    than it takes the lead to miss a merge (`silence`), before micro-batches wait.
    """
    window: int = 8
    """Epochs beyond the delivered one that a merge accepts.

    `max_undelivered`: a merge accepts all that an outbox holds. More would stay unused.
    """
    max_lane_bytes: int = 256 * 2**20
    """Bytes in a lane at which it stops reading and asks for a lapse.

    The default of the manifest's `splits.buffer`, which replaces it: `max_undelivered` epochs of
    `max_epoch_bytes`, even if one lane has all rows. When a sink is slow, outboxes are full before
    lanes are.
    """
    max_full: int = 30_000
    """How long a full lane waits for a replica that is behind but not silent.

    Under a backlog lanes are always full and one twin is always behind, so it is far above two
    intervals and `silence`, which make a silent one lapse. Above `skip_patience`: a replica that
    copies its twin's state holds the trim point meanwhile.
    """
    max_chunk_bytes: int = 8 * 2**20
    """Bytes at which a chunk is sealed without waiting for its time.

    A quarter of `max_epoch_bytes`, so that an epoch is filled in steps; a link has to copy one
    within `copy_silence`, or the buddy is dropped (ADR 12).
    """
    synced_within: int = 1
    """Epochs behind the last header up to which a replica counts as synced.

    The epoch that runs; below `max_uncommitted`, at which the lead waits.
    """
    skips_beyond: int = 2
    """Epochs behind its twin up to which a restarted replica computes what it missed; one further
    behind copies its twin's state.

    `max_uncommitted`, which twins that work may be apart. Beyond it a copy is faster: 7.6 s with
    two, 18.5 s with four (ADR 14).
    """
    skip_patience: int = 10_000
    """How long it waits for that copy before it computes the epochs after all (ADR 14).

    Twenty requests for it (`retry`). Below `max_full`, which would make it lapse.
    """
    rebases_beyond: int = 8
    """Epochs behind delivery beyond which a running replica copies its twin's state, too.

    Four times `skips_beyond`: its query has to be opened again on the copy, which takes about as
    long as an epoch, and a replica that is only slow for a moment catches up by itself.
    """
    skips_apart: int = 15_000
    """Shortest time between two copies of its twin's state to a running replica.

    Above `skip_patience`, so that a copy that takes too long is followed by epochs it computes.
    """
    headers_per_view: int = 8
    """Maximum number of headers in one view.

    `max_undelivered`: without a delivery a replica could not run more of them.
    """
    entries_before_snapshot: int = 24
    """Entries of the header log after which they are folded into its snapshot.

    A dozen epochs, each with a header and a trim point: the snapshot is written rarely, and a
    restart reads few files. Depends on no other; the simulator bounds volumes by it.
    """
    patience: int = 30_000
    """How long a rebuild of the header log waits for holders that do not answer, rule (i).

    Three times what a driver needs to boot (ADR 11): one left out costs its seat. Above twice
    `silence`, which every rebuild waits.
    """

    @property
    def heartbeat_every(self) -> int:
        """Interval of heartbeats: a quarter of the shorter heartbeat timeout."""
        return self.copy_silence // 4

    @property
    def beat(self) -> int:
        """Interval of ticks: twice in an epoch, and often enough for heartbeats."""
        return max(10, min(self.interval // 2, self.heartbeat_every))

    @property
    def retry(self) -> int:
        """Delay before an unanswered request is sent again: about one epoch interval."""
        return min(max(self.interval, 200), self.silence // 3)

"""The values that the machines keep and exchange."""

from __future__ import annotations

from typing import NamedTuple

END_OF_TIME = 2**62
"""Watermark of a stream whose source partitions have all ended: every window closes."""

BEGINNING_OF_TIME = -(2**62)
"""Watermark of a stream of which some source partition has not shown a row yet."""

ACTIVE, IDLE, RELEASED, ENDED = "active", "idle", "released", "ended"
"""What an owner says of a source partition. Only an owner says it; silence says nothing."""


class Peer(NamedTuple):
    """Where a message came from: a volume, and which process start on it."""

    volume: str
    incarnation: int


class Place(NamedTuple):
    """Content of the register. Every swap raises the version, every new lead the term.

    Whoever swaps writes itself as lead, so the content tells who wrote it [10].
    """

    version: int
    term: int
    lead: str
    buddy: str | None


NOBODY = Place(0, 0, "", None)
"""The register before the first split wrote it."""


class LaneId(NamedTuple):
    """A lane: the n-th log of chunks of one split's volume."""

    split: str
    number: int


Position = object
"""A place in a source partition, in its own terms; 0 is the beginning. Only compared for equality:
a source knows what comes after what."""


class Mark(NamedTuple):
    """How far a source partition has been read, and what its owner says of it."""

    position: Position
    event_time: int
    state: str = ACTIVE
    rows: int = 0
    """Rows taken in since the beginning, whoever owned the partition."""
    rejected: int = 0
    """Rows and files put aside since the beginning, likewise."""


class Note(NamedTuple):
    """What the lead needs to know of a chunk: its size and where it leaves each partition."""

    size: int
    marks: tuple[tuple[str, Mark], ...]


class Chunk(NamedTuple):
    """A sealed chunk as it lies on a volume. The protocol never looks into the payload."""

    note: Note
    payload: object


class Span(NamedTuple):
    """The chunks of one lane in one epoch, both ends included."""

    lane: LaneId
    first: int
    last: int


class Generation(NamedTuple):
    """One immutable answer to "who owns which keys".

    `pairs` are (name, keys); `parents` are, for a pair that is new in this generation, the pairs
    that owned its keys before. What keys look like is the routing function's business.
    """

    number: int
    pairs: tuple[tuple[str, object], ...]
    parents: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def names(self) -> tuple[str, ...]:
        """The names of the pairs."""
        return tuple(name for name, _ in self.pairs)

    def keys_of(self, pair: str) -> object:
        """The keys of one pair."""
        return next(keys for name, keys in self.pairs if name == pair)

    def parents_of(self, pair: str) -> tuple[str, ...]:
        """The pairs that a new pair's state is made from; nothing for a pair carried over."""
        return next((parents for name, parents in self.parents if name == pair), ())


class Header(NamedTuple):
    """Closes an epoch: what it holds, who answers for it, and where time stands.

    It never changes once it is out [3]. `marks` and `watermarks` are complete, not changes, so
    that any header alone tells from where every source partition goes on.
    """

    epoch: int
    generation: int
    spans: tuple[Span, ...]
    marks: tuple[tuple[str, Mark], ...]
    watermarks: tuple[tuple[str, int], ...]
    delivered: int
    final: bool = False


class Stream(NamedTuple):
    """A logical input: its source partitions, and how late its rows may come."""

    name: str
    partitions: tuple[str, ...]
    delay: int = 0
    idle_timeout: int | None = None


class Intent(NamedTuple):
    """The operator's document: what the pipeline should become. One writer, versioned [10].

    `generations` are those to be known; one that is missing although it was there and was never
    the target has been given up. `primaries` are (pair, volume). While it is `suspended` nothing
    is read from sources; everything else goes on.
    """

    version: int
    generations: tuple[Generation, ...]
    target: int
    streams: tuple[Stream, ...]
    slots: int = 1
    replicas: int = 2
    primaries: tuple[tuple[str, str], ...] = ()
    suspended: bool = False


class Member(NamedTuple):
    """A split as its peers find it: stable name, volume, node."""

    name: str
    volume: str
    node: str


class Settings(NamedTuple):
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
    def heard_every(self) -> int:
        """How often peers hear of each other: several times in every silence."""
        return self.copy_silence // 4

    @property
    def beat(self) -> int:
        """How often machines are told the time: twice in an epoch, and in time to be heard."""
        return max(10, min(self.interval // 2, self.heard_every))

    @property
    def retry(self) -> int:
        """How long an answer may take before it is asked for again: as long as a short epoch."""
        return min(max(self.interval, 200), self.silence // 3)

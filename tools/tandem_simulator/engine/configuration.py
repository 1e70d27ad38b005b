"""Draws a schedule's configuration: sizes, settings, rows, changes, seeds; no faults."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tandem_core.contract.intent import IntentStream
from tandem_runtime.protocol.types import ProtocolSettings
from tandem_simulator.engine.demands import (
    ChangePlan,
    Demand,
    DemandKind,
    draw_plan,
    draw_sizes,
)

Row = tuple[int, int, int, int]
"""Partition index, sequence within the partition, key, event time."""

ROW_BYTES = 10
"""The size of a row in every bound."""

REBUILDS = 0.03
"""Share of schedules in which the header log is lost and rebuilt twice."""


class Partition(NamedTuple):
    """A source partition: its rows and when each one appears."""

    name: str
    number: int
    stream: int
    rows: tuple[Row, ...]
    available: tuple[int, ...]
    ends: int
    """When it becomes known that no row follows."""
    forgets: bool
    """Acknowledged rows are dropped, as with a client that pushes."""


class Noise(NamedTuple):
    """Disturbances by the network, as shares of all messages."""

    loss: float
    repeat: float
    late: float
    spread: int
    """Delays are up to this many milliseconds."""


QUIET = Noise(0.0, 0.0, 0.0, 10)
"""A network that loses, delays and repeats nothing."""


class Configuration(NamedTuple):
    """The configuration of one schedule."""

    seed: int
    number: int
    settings: ProtocolSettings
    nodes: tuple[str, ...]
    splits: int
    buckets: int
    pairs: tuple[tuple[str, frozenset[int]], ...]
    slots: int
    sinks: tuple[tuple[str, bool], ...]
    """Names of the sinks, and whether each one is transactional."""
    streams: tuple[IntentStream, ...]
    partitions: tuple[Partition, ...]
    keys: int
    faults_end: int
    beyond: bool
    """Faults may exceed what the design survives."""
    noise: Noise
    changing: ChangePlan
    """Changes of pairs and keys that the user asks for, and how they are carried out."""
    skews: tuple[tuple[int, int], ...]
    """Offset and rate (per mille) of clocks, assigned to processes in turn."""
    rebuilds: bool = False
    """The header log is lost and rebuilt twice; a member is silent the first time."""
    resizes: tuple[Demand, ...] = ()
    """Changes of the number of merge slots."""
    scalings: tuple[Demand, ...] = ()
    """Changes of the number of splits."""
    operator_deaths: float = 0.0
    """Probability that the operator dies before it acts."""


def configure(seed: int, number: int) -> Configuration:
    """Draw the configuration of a schedule."""
    rng = stream(seed, number, "configuration")
    changing = stream(seed, number, "changes")
    buckets = rng.choice((8, 8, 12, 16))
    keys = rng.randint(4, 14)
    pairs = _pairs(rng, buckets, rng.choice((1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4)))
    plan = draw_plan(changing, len(pairs), keys)
    faults_end = max(rng.randint(4000, 7000), plan.until)
    streams, partitions = _sources(rng, faults_end, keys, forgets=rng.random() < 0.75)  # noqa: PLR2004
    sinks = _sinks(rng)
    slots, resizes = _slots(stream(seed, number, "slots"), faults_end)
    splits = rng.choice((2, 2, 3, 3, 3, 4))
    drawn = Configuration(
        seed=seed,
        number=number,
        settings=_settings(rng, changes=bool(plan.demands)),
        nodes=tuple(f"node-{i}" for i in range(rng.choice((1, 2, 2, 3, 3, 3)))),
        splits=splits,
        buckets=buckets,
        pairs=pairs,
        slots=slots,
        sinks=sinks,
        streams=streams,
        partitions=partitions,
        keys=keys,
        faults_end=faults_end,
        beyond=rng.random() < 0.05,  # noqa: PLR2004
        noise=_noise(rng),
        changing=plan,
        skews=tuple((rng.randint(0, 5000), rng.choice((0, 0, 0, -3, 5))) for _ in range(7)),
        resizes=resizes,
        scalings=_scalings(changing, splits, faults_end),
        operator_deaths=changing.choice((0.0, 0.0, 0.0, 0.05, 0.3)),
    )
    return _with_rebuilds(drawn, stream(seed, number, "rebuilds"))


def _with_rebuilds(drawn: Configuration, rng: Random) -> Configuration:
    """Let some schedules last long enough for two rebuilds, with sources that forget nothing.

    Otherwise acknowledged rows without a known header would end them with `DataLost`.
    """
    if rng.random() >= REBUILDS:
        return drawn
    faults_end = rng.randint(11_000, 14_000)
    streams, partitions = _sources(rng, faults_end, drawn.keys, forgets=False)
    return drawn._replace(
        splits=rng.choice((3, 4, 4)),
        pairs=_pairs(rng, drawn.buckets, rng.choice((1, 1, 2))),
        streams=streams,
        partitions=partitions,
        faults_end=faults_end,
        beyond=True,
        rebuilds=True,
        changing=ChangePlan(),
        scalings=(),
    )


def _sinks(rng: Random) -> tuple[tuple[str, bool], ...]:
    """Draw one sink or two, transactional or not."""
    count = rng.choice((1, 1, 2))
    return tuple((f"sink-{i}", rng.random() < 0.55) for i in range(count))  # noqa: PLR2004


def _slots(rng: Random, faults_end: int) -> tuple[int, tuple[Demand, ...]]:
    """Draw the number of merge slots, and its changes."""
    slots = rng.choice((1, 1, 1, 2, 2, 3))
    times = [rng.randint(500, faults_end) for _ in range(rng.choice((0, 0, 0, 1, 2, 3)))]
    return slots, draw_sizes(rng, DemandKind.SLOTS, slots, (1, 2, 3), times)


def _scalings(rng: Random, splits: int, faults_end: int) -> tuple[Demand, ...]:
    """Draw changes of the number of splits."""
    times = [rng.randint(500, faults_end) for _ in range(rng.choice((0, 0, 0, 0, 1, 2)))]
    return draw_sizes(rng, DemandKind.SPLITS, splits, (1, 2, 3, 4), times)


def _settings(rng: Random, *, changes: bool) -> ProtocolSettings:
    """Draw the settings; while new pairs copy, lanes mostly have room for the rows that wait."""
    small, large = (120, 200, 300, 600), (200, 600, 600, 1200)
    lane = rng.choice(large if changes else small)
    return ProtocolSettings(
        interval=rng.choice((500, 500, 600)),
        silence=1500,
        max_epoch_bytes=rng.choice((70, 120, 240)),
        max_uncommitted=rng.choice((2, 3, 4, 4)),
        max_undelivered=rng.choice((3, 4, 6, 8)),
        window=rng.choice((3, 4, 6, 8)),
        max_lane_bytes=lane,
        max_full=1000,
        max_chunk_bytes=rng.choice((30, 50, 100)),
        entries_before_snapshot=rng.choice((6, 12, 24)),
        headers_per_view=rng.choice((2, 4, 8)),
        patience=4000,
    )


def _noise(rng: Random) -> Noise:
    if rng.random() < 0.25:  # noqa: PLR2004
        return Noise(0.0, 0.0, 0.0, rng.choice((5, 20)))
    return Noise(
        loss=rng.choice((0.0, 0.005, 0.02)),
        repeat=rng.choice((0.0, 0.01, 0.02)),
        late=rng.choice((0.0, 0.005, 0.02)),
        spread=rng.choice((3, 5, 15, 40)),
    )


def _pairs(rng: Random, buckets: int, count: int) -> tuple[tuple[str, frozenset[int]], ...]:
    owners = [b % count for b in range(buckets)]
    rng.shuffle(owners)
    return tuple(
        (f"pair-{i}", frozenset(b for b in range(buckets) if owners[b] == i)) for i in range(count)
    )


def _sources(
    rng: Random, faults_end: int, keys: int, *, forgets: bool
) -> tuple[tuple[IntentStream, ...], tuple[Partition, ...]]:
    """Draw the streams, and their partitions with all rows."""
    streams: list[IntentStream] = []
    partitions: list[Partition] = []
    for s in range(rng.choice((1, 1, 1, 2))):
        names = []
        for p in range(rng.choice((1, 1, 2, 2, 3)) if s == 0 else 1):
            names.append(f"stream-{s}/{p}")
            partitions.append(
                _partition(rng, names[-1], len(partitions), s, faults_end, keys, forgets)
            )
        idle = rng.choice((None, None, 1500, 3000))
        streams.append(IntentStream(f"stream-{s}", tuple(names), rng.choice((0, 300, 1500)), idle))
    return tuple(streams), tuple(partitions)


def _partition(
    rng: Random, name: str, index: int, s: int, faults_end: int, keys: int, forgets: bool
) -> Partition:
    count = rng.choice((0, 8, 20, 40)) if rng.random() < 0.3 else rng.randint(12, 36)  # noqa: PLR2004
    until = rng.randint(max(faults_end * 2 // 3, faults_end - 2000), faults_end + 600)
    available = sorted(rng.randint(0, until) for _ in range(count))
    if count and rng.random() < 0.3:  # noqa: PLR2004
        # A burst: bounds are reached, and many chunks wait for a header.
        burst = rng.randint(0, until)
        available = sorted(burst if rng.random() < 0.5 else at for at in available)  # noqa: PLR2004
    rows = tuple(
        (index, sequence, rng.randrange(keys), at + rng.randint(-1200, 200))
        for sequence, at in enumerate(available)
    )
    return Partition(name, index, s, rows, tuple(available), until, forgets)


def stream(seed: int, number: int, purpose: str) -> Random:
    """The random numbers of a schedule for one purpose; the same on every machine."""
    return Random(f"{seed}/{number}/{purpose}")  # noqa: S311 (reproducible, not secret)

"""Times operations on one core: median of 20, and the worst."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from bench.routing.world import World, pair_names, settings_for

from tandem.routing.load.key_counter import KeyCounter
from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.construct import construct
from tandem.routing.planning.settings import Heuristic, PlanningSettings
from tandem.routing.planning.thresholds import counting_epsilon
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import to_bytes
from tandem_core.routing.key_hashing import hash_column
from tandem_core.routing.xxh64 import hash_words

REPEATS = 20
HOT_KEYS = 1_000
BATCHES = (10_000, 1_000_000)
DISTINCT = (10_000, 1_000_000)


@dataclass(frozen=True)
class Timing:
    """One operation, timed `REPEATS` times."""

    name: str
    seconds: tuple[float, ...]
    """Wall-clock times."""
    core_seconds: tuple[float, ...]
    """Times that the process had a core; shorter than the above if the machine is busy."""
    rows: int = 0
    """Rows handled each time; 0 if not applicable."""
    target: str = ""

    @property
    def median(self) -> float:
        """Median of all times, in seconds."""
        return float(np.median(self.seconds))

    def describe(self) -> tuple[str, str, str, str, str]:
        """Median, worst, median time on the core, and the rates at both medians."""
        core = float(np.median(self.core_seconds))
        times = [f"{each * 1e3:.2f} ms" for each in (self.median, max(self.seconds), core)]
        rates = [
            f"{self.rows / each / 1e6:.1f} M/s" if self.rows else "" for each in (self.median, core)
        ]
        return times[0], times[1], rates[0], times[2], rates[1]


def timed(name: str, action: Callable[[], object], rows: int = 0, target: str = "") -> Timing:
    """Run an action once unmeasured, then `REPEATS` times."""
    action()
    seconds, core_seconds = [], []
    for _ in range(REPEATS):
        start, core_start = time.perf_counter(), time.process_time()
        action()
        core_seconds.append(time.process_time() - core_start)
        seconds.append(time.perf_counter() - start)
    return Timing(name, tuple(seconds), tuple(core_seconds), rows, target)


def all_timings() -> Iterator[Timing]:
    """Time routing, counting and construction."""
    yield from _routing()
    yield from _counting()
    yield from _construction()


def _routing() -> Iterator[Timing]:
    rng = np.random.default_rng(1)
    for distinct in DISTINCT:
        for rows in BATCHES:
            numbers = rng.integers(0, distinct, rows)
            texts = pa.array([f"user-{number:08d}" for number in numbers])
            for kind, column in (("string", texts), ("integer", pa.array(numbers))):
                batch = pa.record_batch([column], names=["key"])
                function = _function_with_hot_keys(column)
                target = "5 M rows/s" if rows == max(BATCHES) and distinct == min(DISTINCT) else ""
                name = f"route {rows:,} rows, {kind} keys, {distinct:,} distinct, 1,000 hot"
                yield timed(name, partial(function.owner_of_rows, batch, ["key"]), rows, target)


def _function_with_hot_keys(column: pa.Array) -> RoutingFunction:
    hashes = np.unique(hash_column(column, "key"))
    hot = hashes[:: max(len(hashes) // HOT_KEYS, 1)][:HOT_KEYS]
    pairs = tuple(sorted(pair_names(10)))
    owners = (np.arange(len(hot)) % len(pairs)).astype(np.uint16)
    return RoutingFunction(pairs, (512,) * len(pairs), hot, owners)


def _counting() -> Iterator[Timing]:
    rng = np.random.default_rng(2)
    epsilon = counting_epsilon(settings_for("LLL"), 10, 1e6)
    world = World()
    drawn = np.searchsorted(np.cumsum(world.frequencies), rng.random(max(BATCHES)))
    zipf = world.hashes[np.minimum(drawn, world.domain - 1)]
    streams = {
        "Zipf 1": zipf,
        "10,000 distinct": hash_words(rng.integers(0, 10_000, max(BATCHES), dtype=np.uint64)),
        "1,000,000 distinct": hash_words(rng.integers(0, 10**6, max(BATCHES), dtype=np.uint64)),
    }
    sizes = rng.integers(20, 400, max(BATCHES))
    for kind, hashes in streams.items():
        for rows in BATCHES:
            counter = KeyCounter(4_000_000, epsilon)
            target = "5 M rows/s" if rows == max(BATCHES) else ""
            name = f"count {rows:,} rows with their bytes, {kind}"
            yield timed(name, partial(counter.add, hashes[:rows], sizes[:rows]), rows, target)


def counted_profile(pairs: int) -> LoadProfile:
    """The profile that counting reports after 4,000,000 Zipf rows over 1,000,000 keys."""
    world, rng = World(), np.random.default_rng(3)
    counter = KeyCounter(4_000_000, counting_epsilon(PlanningSettings(), pairs, world.domain))
    for _ in range(4):
        drawn = np.searchsorted(np.cumsum(world.frequencies), rng.random(1_000_000))
        hashes = world.hashes[np.minimum(drawn, world.domain - 1)]
        counter.add(hashes, rng.integers(20, 400, 1_000_000), rng.integers(0, 50, 1_000_000))
    return counter.profile()


def _construction() -> Iterator[Timing]:
    for pairs, target in ((10, "50 ms"), (100, "1 s")):
        profile = counted_profile(pairs)
        for heuristic in (Heuristic.READJ, Heuristic.SCAN, Heuristic.REDIST):
            settings = PlanningSettings(heuristic=heuristic)
            before = construct(profile, pair_names(pairs - 1), None, settings).function
            after = construct(profile, pair_names(pairs), before, settings).function
            aim = target if heuristic is PlanningSettings().heuristic else ""
            what = f"{pairs} pairs, {after.hot_count} hot keys of 1,000,000, {heuristic.value}"
            first = partial(construct, profile, pair_names(pairs), None, settings)
            yield timed(f"construct from nothing, {what}", first, target=aim)
            grown = partial(construct, profile, pair_names(pairs), before, settings)
            yield timed(f"construct after adding a pair, {what}", grown, target=aim)


def serialised_bytes() -> int:
    """Size of a function with 100 pairs and 1,000 hot keys."""
    function = _function_with_hot_keys(pa.array(np.arange(10_000)))
    pairs = tuple(sorted(pair_names(100)))
    return len(to_bytes(replace(function, pairs=pairs, vnodes=(512,) * len(pairs))))

"""Compares the paper's printed figures with ours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from bench.routing.methods import CONSISTENT, HEURISTICS, UNIFORM, grow
from bench.routing.world import Measured, World, settings_for

from tandem.routing.load.lossy_counter import LossyCounter
from tandem.routing.planning.settings import PlanningSettings
from tandem.routing.planning.thresholds import counting_epsilon

RUNS = 30
FIRST_RUN = 1_000
"""First seed of the runs. None of these was used to choose the constants of construction, such as
the floor of the balance penalty; seeds 0 to 11 were."""

FEW_RUNS = 3
"""Runs of slow settings; the paper took the mean of 5 runs."""

QUANTITIES: dict[str, Callable[[Measured], float]] = {
    "b": lambda measured: measured.imbalance,
    "m": lambda measured: measured.migration,
    "b_c": lambda measured: measured.each[1],
}
"""The paper's relative imbalance, relative migration, and relative imbalance of computation."""


@dataclass(frozen=True)
class Setting:
    """One point of the paper's experiment."""

    name: str
    functions: str
    pairs: int = 10
    domain: int = 1_000_000
    runs: int = RUNS

    def mean(self, quantity: str, method: str, form: str) -> float:
        """Mean over all runs of the step to the last pair."""
        steps = last_steps(self, method, form)
        return float(np.mean([QUANTITIES[quantity](step) for step in steps]))

    def line(self, method: str, quantity: str, paper: str, limit: float, note: str = "") -> "Line":
        """A figure of one of the three heuristics."""
        printed = self.mean(quantity, method, "printed")
        tandem = self.mean(quantity, method, "tandem")
        return Line(self.name, method, quantity, paper, limit, printed, tandem, note)

    def baseline(self, method: str, quantity: str, paper: str, note: str = "") -> "Line":
        """A figure of a method that is only a baseline."""
        printed = self.mean(quantity, method, "printed")
        return Line(self.name, method, quantity, paper, None, printed, None, note)


@cache
def last_steps(setting: Setting, method: str, form: str) -> tuple[Measured, ...]:
    """The result of the step to the last pair, for every run."""
    chosen = settings_for(setting.functions)
    return tuple(
        grow(method, form, World(setting.domain, seed=run), chosen, setting.pairs)[-1]
        for run in range(FIRST_RUN, FIRST_RUN + setting.runs)
    )


@dataclass(frozen=True)
class Line:
    """One figure of the paper, and ours."""

    setting: str
    method: str
    quantity: str
    paper: str
    limit: float | None
    """The paper's value, for the three heuristics; baselines are only compared."""
    printed: float | None
    tandem: float | None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether Tandem is at least as good as the paper's figure."""
        if self.limit is None or self.tandem is None:
            return "compared"
        return "reached" if self.tandem <= self.limit else "NOT REACHED"


def all_lines() -> Iterator[Line]:
    """Every figure that the paper's prose gives, in its order."""
    yield from _resource_functions()
    yield from _number_of_channels()
    yield from _domain_sizes()
    yield from _sizes()


LLL = Setting("fig. 3, LLL, N=10", "LLL")
LQL = Setting("fig. 3, LQL, N=10", "LQL")
MANY = Setting("fig. 6, LCL, N=32", "LCL", pairs=32, runs=FEW_RUNS)

_FLOOR_NOTE = (
    "printed form: the hottest key's pair keeps a full share of all other keys, so b cannot go "
    "below about 1.22 with this many entries; Tandem takes weight off that pair"
)
_MODULO_NOTE = (
    "hash modulo N is expected to move N-1 pairs' worth; the paper's lower value is not explained"
)
_LARGE_KEY_NOTE = (
    "the hottest key alone is 2.2 fair shares: no function can keep the bound, and Tandem then "
    "prefers to move less over a lower b; the paper prints no value, only the order"
)
_BETWEEN_NOTE = (
    "the paper prints 2.2 falling to 1.25 for 10^4 to 10^8 keys without the points between, so "
    "1.25 is asked for from 10^6 on; 10^8 keys are left out for the time they take"
)
_ENTRIES_NOTE = "the most seen in a stream of 4,000,000 rows; the paper does not say when it looked"


def _resource_functions() -> Iterator[Line]:
    yield LLL.baseline(UNIFORM, "b", "1.55")
    yield LLL.baseline(CONSISTENT, "b", "1.75")
    for method, value in (("readj", 1.2), ("redist", 1.32), ("scan", 1.32)):
        yield LLL.line(method, "b", f"{value:g}", value, _FLOOR_NOTE)
    yield LLL.baseline(UNIFORM, "m", "> 8", _MODULO_NOTE)
    yield LLL.baseline(CONSISTENT, "m", "lowest; < 1 in some cases")
    for method, value in (("readj", 1.34), ("redist", 1.23), ("scan", 1.23)):
        yield LLL.line(method, "m", f"{value:g}", value)
    yield LQL.baseline(CONSISTENT, "b_c", "not under control")
    for method in ("readj", "redist", "scan"):
        yield LQL.line(method, "b_c", "in the 30s", 39.0)


def _number_of_channels() -> Iterator[Line]:
    yield MANY.baseline(UNIFORM, "m", "about 22", _MODULO_NOTE)
    yield MANY.baseline(CONSISTENT, "b", "> 2")
    yield MANY.line("scan", "m", "> 3", 3.0)
    yield MANY.line("redist", "m", "about 1.15", 1.15)
    for method in HEURISTICS:
        limit = MANY.mean("b", CONSISTENT, "printed")
        yield MANY.line(method, "b", "below consistent", limit, _LARGE_KEY_NOTE)


def _domain_sizes() -> Iterator[Line]:
    points = ((10_000, 2.2, 10), (100_000, 2.2, 10), (1_000_000, 1.25, 10), (10**7, 1.25, 1))
    for domain, value, runs in points:
        setting = Setting(f"fig. 8, LCL, {domain:,} keys", "LCL", domain=domain, runs=runs)
        yield setting.baseline(UNIFORM, "m", "6.5 to 7.5", _MODULO_NOTE)
        for method in HEURISTICS:
            yield setting.line(method, "m", f"{value:g}", value, _BETWEEN_NOTE)


def _sizes() -> Iterator[Line]:
    hot = last_steps(LLL, "readj", "tandem")[0].explicit
    yield Line("fig. 9, sigma=0.1", "all", "explicit", "about 50", 50.0, hot, hot)
    for functions, paper in (("LCL", "about 2,500"), ("LQL", "about 50,000")):
        entries = lossy_entries(settings_for(functions))
        name = f"fig. 9, sigma=0.1, {functions}"
        yield Line(name, "all", "lossy entries", paper, None, None, entries, _ENTRIES_NOTE)


def lossy_entries(settings: PlanningSettings, rows: int = 4_000_000) -> float:
    """The most keys that a counter remembers over `rows` Zipf rows, in 20 samples."""
    world = World()
    rng = np.random.default_rng(1)
    counter = LossyCounter(counting_epsilon(settings, 10, world.domain), windows_per_block=1)
    cumulated = np.cumsum(world.frequencies)
    most = 0
    for _ in range(20):
        drawn = np.searchsorted(cumulated, rng.random(rows // 20))
        counter.add(world.hashes[np.minimum(drawn, world.domain - 1)])
        most = max(most, counter.entries)
    return float(most)

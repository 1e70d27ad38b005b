"""A pipeline through which rows flow, and whose whole output is counted again at the end.

The test puts numbered rows into a directory, one file after the other, for as long as it takes;
splits read them there, and the sink's files lie beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.streaming.deliveries import Outlet, longest_gap
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import Verdict, counted_rows, recount, recount_totals
from bench.streaming.pipelines import Shape, manifest
from bench.streaming.rows import Rows
from cluster.trial.pipeline import TrialPipeline
from cluster.trial.pods import Object
from cluster.trial.space import MOUNT, Space, with_storage
from cluster.trial.waiting import until
from tests.cluster.e2e.measuring import Recovery

from tandem_core.model.states import EventReason

INTERVAL = 1.0
"""Seconds of an epoch."""
BEYOND = 8
"""Epochs that only those who are left can deliver: more than may be under way at once."""
GOES_ON_WITHIN = 120.0
"""Seconds that delivery may take to go on, however much starts anew meanwhile."""

_ROWS_PER_SECOND = 200
_FILE_SECONDS = 0.25
_KEYS = 50
_SHAPE = Shape(interval_ms=int(1000 * INTERVAL), memory="768Mi")
_MUST_NOT_HAPPEN = frozenset(
    {EventReason.DATA_LOST, EventReason.TWINS_DIFFER, EventReason.POISON_EPOCH}
)


class Flow(TrialPipeline):
    """A pipeline that counts payments."""

    def __init__(self, space: Space, document: Object) -> None:
        super().__init__(space, document)
        place = Path(space.shared, self.name)
        self.feeder = Feeder(place / "in", Rows(_KEYS), _ROWS_PER_SECOND, _FILE_SECONDS)
        # The place is this test's user's, and pods are others.
        place.chmod(0o777)
        self.output = place / "out"
        self.outlet = Outlet(self.output)

    # --- looking ------------------------------------------------------------------------------

    def last(self) -> int:
        """The last epoch that was delivered; 0 if none was."""
        seen = self.outlet.look()
        return seen[-1].epoch if seen else 0

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time without a delivery that overlaps a stretch of time, in seconds."""
        return longest_gap(self.outlet.look(), begin, end).seconds

    # --- waiting ------------------------------------------------------------------------------

    def goes_on(self, epochs: int = BEYOND, limit: float = GOES_ON_WITHIN) -> None:
        """Wait until so many more epochs are delivered."""
        wanted = self.last() + epochs
        until(lambda: self.last() >= wanted, limit, f"epoch {wanted} is delivered")

    def survives(self, fault: Callable[[], None], within: float) -> Recovery:
        """Make a fault, wait until all is whole again and delivery goes on; what it cost."""
        begin = now()
        fault()
        self.until_whole(within)
        end = now()
        self.goes_on(2)
        return Recovery(self.longest_gap(begin, end), end - begin)

    def begin(self) -> None:
        """Wait until everybody is there, then let rows flow."""
        self.until_whole()
        self.feeder.start()
        self.goes_on(3)

    # --- the end ------------------------------------------------------------------------------

    def is_right(self) -> None:
        """Take no more rows in, wait for the last result, and count everything again.

        Raises:
            AssertionError: something is lost, doubled or wrong.
        """
        self.feeder.stop()
        last = self.feeder.fed - 1
        until(lambda: self.outlet.reaches() >= last, GOES_ON_WITHIN, f"row {last} is delivered")
        self._passes(recount(self.output, self.feeder.rows, self.feeder.fed))

    def counts_are_right(self) -> None:
        """As `is_right`, for a source of several partitions: its rows have no common order.

        Raises:
            AssertionError: something is lost, doubled or wrong.
        """
        self.feeder.stop()
        fed = self.feeder.fed
        until(lambda: counted_rows(self.output) >= fed, GOES_ON_WITHIN, f"{fed} rows are counted")
        self._passes(recount_totals(self.output, self.feeder.rows, fed))

    def _passes(self, verdict: Verdict) -> None:
        assert verdict.right, verdict
        bad = [each for each in self.events.all() if each.reason in _MUST_NOT_HAPPEN]
        assert not bad, bad


def counting(name: str = "spending", *, pairs: int = 1, spares: int = 0) -> Object:
    """The manifest of a pipeline that counts what a `Flow` feeds it."""
    place = Path(MOUNT, name)
    document = manifest(_SHAPE, place / "in", place / "out")
    document["metadata"]["name"] = name
    spec = document["spec"]
    spec["pairs"] |= {"count": pairs, "spares": spares}
    spec["splits"]["template"] = with_storage()
    spec["merges"] = {"template": with_storage()}
    return document


@contextmanager
def fed(space: Space, document: Object) -> Iterator[Flow]:
    """A pipeline that is not applied yet, with its first rows; no rows come after the block."""
    flow = Flow(space, document)
    flow.feeder.preload()
    try:
        yield flow
    finally:
        flow.feeder.stop()


@contextmanager
def flowing(space: Space, document: Object | None = None) -> Iterator[Flow]:
    """A pipeline that is whole when the block begins, and that is right when it ends."""
    with fed(space, document or counting()) as flow:
        flow.apply()
        flow.begin()
        yield flow
        flow.is_right()

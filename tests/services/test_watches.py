"""What splits and merges tell of themselves: `/state` and gauges."""

from typing import Any, cast

from prometheus_client import REGISTRY
from tests.protocol.builders import S, header, running_book
from tests.protocol.test_merge import Merge
from tests.protocol.test_split import opened
from tests.protocol.test_summary import lead_of

from tandem_runtime.services import merge, split


class Nothing:
    """A split that has read nothing."""

    def rejected(self) -> int:
        return 0


def gauge(name: str) -> float | None:
    return REGISTRY.get_sample_value(name)


def test_gauges_of_a_split_are_of_the_moment_they_are_read() -> None:
    found = opened()
    watch = split.Watch(found.machine, cast("Any", Nothing()))
    assert [gauge(f"tandem_{name}") for name in ("lane_bytes", "leads", "epoch_cut")] == [0, 0, 0]
    found.rows(size=10)
    found.tick(S.interval)
    assert gauge("tandem_lane_bytes") == 10
    found.machine.succession.lead = lead_of(running_book(header(1), header(2)))
    assert [gauge(f"tandem_{name}") for name in ("leads", "epoch_cut")] == [1, 2]
    assert cast("Any", watch.state())["split"]["lane_bytes"] == 10


def test_the_gauge_of_a_merge_is_of_the_moment_it_is_read() -> None:
    found = Merge()
    merge.Watch(found.machine, cast("Any", None))
    found.view(delivered=3)
    assert gauge("tandem_epoch_delivered") == 0
    found.at(3)
    assert gauge("tandem_epoch_delivered") == 3

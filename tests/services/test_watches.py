"""What splits and merges tell of themselves: `/state` and gauges."""

from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from tests.local.harness import wait_for
from tests.protocol.builders import S, header, running_book
from tests.protocol.test_merge import Merge
from tests.protocol.test_split import opened
from tests.protocol.test_summary import lead_of
from tests.services.test_node import Around
from tests.surroundings.test_laptop import MANIFEST

from tandem.model.pipeline import Pipeline, parse_pipeline
from tandem.model.spec import ResultFormat, Stream
from tandem.model.states import EventReason
from tandem_runtime.protocol.effects import ReadPosition
from tandem_runtime.protocol.messages import SinkPosition, SourceRows
from tandem_runtime.services import merge, readers, split
from tandem_runtime.services.troubles import Trouble
from tandem_runtime.sinks.files import FilesSink
from tandem_runtime.sources.dead_letters import DeadLetters
from tandem_runtime.sources.opening import open_partition

PATIENCE = 20


class Told:
    """A node that keeps what it is told."""

    def __init__(self) -> None:
        self.events: SimpleQueue[tuple[str, str, str]] = SimpleQueue()
        self.messages: SimpleQueue[Any] = SimpleQueue()

    def tell_event(self, event: str, subject: str, detail: str) -> None:
        self.events.put((event, subject, detail))

    def tell(self, message: Any) -> None:
        self.messages.put(message)


def intake(node: Told) -> split.Intake:
    return split.Intake(cast("Any", Around()), cast("Any", node))


def gauge(name: str) -> float | None:
    return REGISTRY.get_sample_value(name)


def test_gauges_of_a_split_are_of_the_moment_they_are_read() -> None:
    found = opened()
    watch = split.Watch(found.machine, intake(Told()))
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


def stream_of(directory: Path) -> Stream:
    (stream,) = cast("Any", MANIFEST)["spec"]["streams"]
    source = {"files": {"path": str(directory), "format": "json"}}
    spec = {**cast("Any", MANIFEST)["spec"], "streams": [{**stream, "source": source}]}
    parsed = parse_pipeline({**MANIFEST, "spec": spec})
    assert isinstance(parsed, Pipeline)
    return parsed.spec.streams[0]


def test_a_source_is_in_trouble_until_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "RETRY_SECONDS", 0.0)
    directory, node, found = tmp_path / "typo", Told(), intake(Told())
    stream = stream_of(directory)
    letters = DeadLetters(tmp_path / "letters", "s")
    opened = partial(open_partition, stream, "s/0")
    reader = readers.Reader(stream, "s/0", opened, letters, cast("Any", node))
    found._readers["s/0"] = reader
    failures = partial(REGISTRY.get_sample_value, "tandem_source_failures_total")
    before = failures({"partition": "s/0"}) or 0
    reader.pull(0)
    assert node.events.get(timeout=PATIENCE)[:2] == ("SourceFailed", "s")
    (trouble,) = found.troubles(lambda _: True)
    assert (trouble.reason, trouble.subject) == (EventReason.SOURCE_FAILED, "s")
    assert str(directory) in trouble.message
    assert found.troubles(lambda _: False) == []
    reader.pull(0)
    wait_for(lambda: failures({"partition": "s/0"}) == before + 2)
    assert [node.messages.get(timeout=PATIENCE).unreadable for _ in range(2)] == [True, True]
    directory.mkdir()
    (directory / "a.json").write_text('{"k": "x"}\n[]\n[]\n')
    reader.pull(0)
    came = node.messages.get(timeout=PATIENCE)
    assert isinstance(came, SourceRows)
    assert (came.rows, came.rejected) == (1, 2)
    wait_for(lambda: found.troubles(lambda _: True) == [])
    assert node.events.empty()


def test_a_sink_is_in_trouble_until_it_can_be_written(tmp_path: Path) -> None:
    in_the_way, node = tmp_path / "file", Told()
    in_the_way.touch()
    opened = partial(FilesSink, in_the_way / "out", "u", ResultFormat.JSON)
    outlet = merge.Outlet("o", opened, cast("Any", node))
    for op in (1, 2):
        outlet.ask(ReadPosition("o", op))
    assert node.events.get(timeout=PATIENCE)[:2] == ("SinkFailed", "o")
    trouble = outlet.spot.trouble
    assert trouble is not None
    assert (trouble.reason, trouble.subject) == (EventReason.SINK_FAILED, "o")
    assert str(in_the_way / "out") in trouble.message
    in_the_way.unlink()
    outlet.ask(ReadPosition("o", 3))
    wait_for(lambda: outlet.spot.trouble is None)
    told = node.messages.get(timeout=PATIENCE)
    assert told == SinkPosition("o", 0, told.op)
    assert node.events.empty()


def test_only_the_merge_that_delivers_tells_of_sinks() -> None:
    found = Merge(sinks=("o",))
    delivery = merge.Delivery(cast("Any", Around()), found.machine, cast("Any", Told()))
    watch = merge.Watch(found.machine, delivery)
    found.view(delivered=3)
    found.at(2, "o")
    (rewound,) = delivery.troubles()
    assert (rewound.reason, rewound.subject) == (EventReason.SINK_REWOUND, "o")
    delivery.outlets["o"].spot.failed(Trouble(EventReason.SINK_FAILED, "o", "full", ""))
    said = [each["reason"] for each in cast("Any", watch.state())["merge"]["troubles"]]
    assert said == [EventReason.SINK_FAILED, EventReason.SINK_REWOUND]
    found.view(version=(1, 2), active=False)
    assert delivery.troubles() == []


def test_a_sink_that_was_put_back_is_in_trouble_no_more() -> None:
    found = Merge(sinks=("o",))
    delivery = merge.Delivery(cast("Any", Around()), found.machine, cast("Any", Told()))
    found.view(delivered=3)
    found.at(2, "o")
    found.machine.tick(1)
    found.at(3, "o")
    assert delivery.troubles() == []

"""What splits and merges tell of themselves: `/state` and gauges."""

from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from tests.environment.test_laptop import MANIFEST
from tests.local.harness import wait_for
from tests.protocol.builders import S, header, running_state
from tests.protocol.lead.test_summary import lead_of
from tests.protocol.merge.test_merge_machine import Merge
from tests.protocol.split.test_split_machine import opened
from tests.services.test_event_loop import Around

from tandem_core.contract.reports import (
    ActiveMerge,
    DriverState,
    MemberReport,
    MergeState,
    ReplicaState,
    SinkReport,
    SplitState,
    Trouble,
    decode_report,
    encode_report,
)
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.spec import ResultFormat, Stream
from tandem_core.model.states import EventReason, SeatState, SinkClass
from tandem_runtime.protocol.effects import ReadPosition
from tandem_runtime.protocol.lead.summary import PairSummary, SeatSummary, Summary
from tandem_runtime.protocol.messages.peers import SinkPosition, SourceRows
from tandem_runtime.protocol.states import ReplicaLife
from tandem_runtime.protocol.types import Slot
from tandem_runtime.services import merge, partition_reader, replica, split
from tandem_runtime.sinks.files import DirectorySink
from tandem_runtime.sources.dead_letters import DeadLetters
from tandem_runtime.sources.factory import open_partition

PATIENCE = 120


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


def test_split_gauges_are_computed_when_read() -> None:
    found = opened()
    watch = split.SplitMonitor(found.machine, intake(Told()))
    assert [gauge(f"tandem_{name}") for name in ("lane_bytes", "leads", "epoch_cut")] == [0, 0, 0]
    found.rows(size=10)
    found.tick(S.interval)
    assert gauge("tandem_lane_bytes") == 10
    found.machine.succession.lead = lead_of(running_state(header(1), header(2)))
    assert [gauge(f"tandem_{name}") for name in ("leads", "epoch_cut")] == [1, 2]
    assert watch.report().lane_bytes == 10


SEATS = (
    SeatSummary("x0", SeatState.VERIFIED, committed=6, synced=True, silent=False),
    SeatSummary("x1", SeatState.LAPSED, committed=5, synced=False, silent=True),
)
SUMMARY = Summary(
    term=4,
    epoch=7,
    delivered=5,
    trim=3,
    generation=2,
    rows_in=100,
    rejected=9,
    pairs=(PairSummary("x", SEATS),),
    lost=("y",),
    vulnerable=("header log",),
    merges=((0, "m0"), (1, "m1")),
    completed=True,
    slots=(Slot(0, first=1), Slot(1, first=3).ended_at(6), Slot(2, first=7)),
    next_slot=3,
)


def test_lead_report_contains_whole_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    found = opened()
    monkeypatch.setattr(found.machine, "summary", lambda _: SUMMARY)
    lead = split.SplitMonitor(found.machine, intake(Told())).report().lead
    assert lead is not None
    assert (lead.merges, lead.open_slots) == ((ActiveMerge(0, "m0"), ActiveMerge(1, "m1")), (0, 2))
    assert [(pair.name, len(pair.seats)) for pair in lead.pairs] == [("x", 2)]
    for told, known in zip(lead.pairs[0].seats, SEATS, strict=True):
        for name in told.__struct_fields__:
            assert getattr(told, name) == getattr(known, name)
    same = set(Summary._fields) - {"merges", "slots", "pairs"}
    assert {name: getattr(lead, name) for name in same} == {
        name: getattr(SUMMARY, name) for name in same
    }
    assert decode_report(encode_report(MemberReport("s", 1, SplitState(lead)))).lead == lead


@pytest.mark.parametrize(
    ("booted", "joins", "headers", "state"),
    [
        (False, True, (), DriverState.BOOTING),
        (False, False, (1, 2), DriverState.BOOTING),
        (True, True, (9,), DriverState.JOINING),
        (True, False, (), DriverState.RUNNING),
        (True, False, (5, 6), DriverState.RUNNING),
        (True, False, (5, 6, 7), DriverState.REPLAYING),
    ],
)
def test_replica_report_shows_its_activity(
    booted: bool, joins: bool, headers: tuple[int, ...], state: DriverState
) -> None:
    machine = SimpleNamespace(
        pair="x",
        committed=5,
        verified=True,
        joins=joins,
        headers=dict.fromkeys(headers),
        spark_up=booted,
        life=ReplicaLife.IDLE,
    )
    driver = SimpleNamespace(late_dropped=3, batch_ms=12.345)
    told = replica.ReplicaMonitor(cast("Any", machine), cast("Any", driver)).report()
    assert told == ReplicaState(
        state=state,
        committed=5,
        verified=True,
        late_dropped=3,
        pair="x",
        protocol_state="idle",
        batch_ms=12.3,
    )


def test_merge_reports_opened_sinks() -> None:
    found = Merge(sinks=("o",))
    delivery = merge.Delivery(cast("Any", Around()), found.machine, cast("Any", Told()))
    watch = merge.MergeMonitor(found.machine, delivery)
    assert watch.report() == MergeState(slot=found.machine.slot)
    outlet = delivery.outlets["o"]
    outlet.delivery, outlet.position, outlet.rows_out = SinkClass.IDEMPOTENT, 4, 70
    found.view(delivered=3)
    found.at(4, "o")
    found.machine.duplicates_dropped = 2
    assert watch.report() == MergeState(
        active=True,
        delivered=4,
        rows_out=70,
        duplicates_dropped=2,
        sinks=(SinkReport("o", SinkClass.IDEMPOTENT, 4),),
        slot=found.machine.slot,
    )


def test_merge_gauge_is_computed_when_read() -> None:
    found = Merge()
    merge.MergeMonitor(found.machine, cast("Any", None))
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


def test_source_trouble_lasts_until_source_is_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_reader, "RETRY_SECONDS", 0.0)
    directory, node, found = tmp_path / "typo", Told(), intake(Told())
    stream = stream_of(directory)
    letters = DeadLetters(tmp_path / "letters", "s")
    opened = partial(open_partition, stream, "s/0")
    reader = partition_reader.Reader(stream, "s/0", opened, letters, cast("Any", node))
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


def test_sink_trouble_lasts_until_sink_is_writable(tmp_path: Path) -> None:
    in_the_way, node = tmp_path / "file", Told()
    in_the_way.touch()
    opened = partial(DirectorySink, in_the_way / "out", "u", ResultFormat.JSON)
    outlet = merge.Outlet("o", opened, lambda: 0, cast("Any", node))
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


def test_only_delivering_merge_reports_sinks() -> None:
    found = Merge(sinks=("o",))
    delivery = merge.Delivery(cast("Any", Around()), found.machine, cast("Any", Told()))
    watch = merge.MergeMonitor(found.machine, delivery)
    found.view(delivered=3)
    found.at(2, "o")
    (rewound,) = delivery.troubles()
    assert (rewound.reason, rewound.subject) == (EventReason.SINK_REWOUND, "o")
    delivery.outlets["o"].spot.failed(Trouble(EventReason.SINK_FAILED, "o", "full", ""))
    assert [each.reason for each in watch.report().troubles] == [
        EventReason.SINK_FAILED,
        EventReason.SINK_REWOUND,
    ]
    found.view(version=(1, 2), active=False)
    assert delivery.troubles() == []


def test_sink_trouble_ends_when_position_is_restored() -> None:
    found = Merge(sinks=("o",))
    delivery = merge.Delivery(cast("Any", Around()), found.machine, cast("Any", Told()))
    found.view(delivered=3)
    found.at(2, "o")
    found.machine.tick(1)
    found.at(3, "o")
    assert delivery.troubles() == []

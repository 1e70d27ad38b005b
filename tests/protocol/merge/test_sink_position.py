"""A sink's position: delivery is conditional on it, and unknown outcomes are read first."""

from tandem_runtime.protocol.effects import Deliver, ReadPosition
from tandem_runtime.protocol.merge.sink_position import SinkTracker, can_deliver

ANSWERS: tuple[tuple[str, object], ...] = (("x", "rows"),)


def at(position: int) -> SinkTracker:
    sink = SinkTracker("sink")
    sink.read(0, 0)
    assert not sink.told(position, 1)
    return sink


def test_only_next_epoch_may_be_delivered() -> None:  # [2] blind-sink
    assert can_deliver(3, 4)
    assert not can_deliver(3, 3)
    assert not can_deliver(3, 5)


def test_nothing_is_delivered_before_position_is_known() -> None:  # [2]
    sink = SinkTracker("sink")
    assert sink.deliver(1, ANSWERS, 0) == []
    assert sink.read(0, 5) == [ReadPosition("sink", 1)]
    assert (sink.asked_at, sink.deliver(1, ANSWERS, 6)) == (5, [])
    assert not sink.told(0, 1)
    assert (sink.position, sink.asked_at) == (0, None)
    assert sink.deliver(1, ANSWERS, 7) == [Deliver("sink", 1, ANSWERS, 2)]
    assert sink.asked_at == 7


def test_slow_sink_is_read_with_increasing_back_off() -> None:  # [12]
    sink, asked, now = SinkTracker("sink"), [0], 0
    sink.read(0, 0)
    while len(asked) < 5:
        now += 1
        if sink.overdue(10, now):
            sink.read(0, now)
            asked.append(now)
    assert asked == [0, 20, 60, 140, 300]
    sink.told(3, sink.op)
    sink.deliver(4, ANSWERS, 400)
    assert not sink.overdue(10, 409)
    assert sink.overdue(10, 410)


def test_answer_slower_than_silence_is_accepted() -> None:
    sink = SinkTracker("sink")
    sink.read(0, 0)
    assert not sink.overdue(1500, 2000)
    sink.told(3, 1)
    assert len(sink.deliver(4, ANSWERS, 2000)) == 1


def test_one_delivery_is_under_way_at_a_time() -> None:  # [2]
    sink = at(3)
    assert sink.deliver(4, ANSWERS, 1) != []
    assert sink.deliver(4, ANSWERS, 2) == []
    assert not sink.told(4, 2)
    assert (sink.position, sink.deliver(4, ANSWERS, 3)) == (4, [])
    assert sink.deliver(5, ANSWERS, 3) == [Deliver("sink", 5, ANSWERS, 3)]


def test_refused_delivery_adopts_position_of_sink() -> None:  # [2]
    sink = at(3)
    sink.deliver(4, ANSWERS, 1)
    assert not sink.told(6, 2)
    assert (sink.position, sink.asked_at) == (6, None)


def test_late_answer_can_only_advance_position() -> None:  # [11]
    sink = at(3)
    sink.read(0, 1)
    assert not sink.told(2, 1)
    assert (sink.position, sink.asked_at) == (3, 1)
    assert not sink.told(5, 1)
    assert (sink.position, sink.asked_at) == (5, 1)


def test_late_answer_alone_makes_no_position_known() -> None:  # [2]
    sink = SinkTracker("sink")
    sink.read(0, 0)
    sink.read(0, 9)
    assert not sink.told(3, 1)
    assert sink.position is None


def test_rewound_sink_gets_nothing_and_is_reported_once() -> None:
    sink = at(3)
    sink.read(0, 1)
    first = sink.told(2, 2)
    assert (first, sink.rewound, sink.position, sink.asked_at) == (True, True, 3, None)
    assert sink.deliver(4, ANSWERS, 2) == []
    sink.read(0, 3)
    assert not sink.told(2, 3)
    sink.read(0, 4)
    assert not sink.told(3, 4)
    assert sink.deliver(4, ANSWERS, 5) != []


def test_position_below_delivered_epoch_of_log_is_rewound() -> None:
    sink = SinkTracker("sink")
    sink.read(5, 0)
    assert sink.told(4, 1)
    assert sink.position is None


def test_position_at_delivered_epoch_of_log_is_not_rewound() -> None:
    sink = SinkTracker("sink")
    sink.read(5, 0)
    assert not sink.told(5, 1)
    assert (sink.position, sink.rewound) == (5, False)


def test_advance_after_read_request_is_not_rewind() -> None:  # [11]
    sink = at(3)
    sink.deliver(4, ANSWERS, 1)
    sink.read(0, 2)
    assert not sink.told(4, 2)
    assert not sink.told(3, 3)
    assert (sink.position, sink.rewound) == (4, False)

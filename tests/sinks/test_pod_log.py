import io
import json
from typing import Any

import pytest
from tests.sinks.builders import table

from tandem_core.model.states import SinkClass
from tandem_runtime.sinks.base import SinkFailed, SlotPosition
from tandem_runtime.sinks.pod_log import PrintedSink


class Log:
    """What the header log says is delivered."""

    delivered = 0

    def __call__(self) -> int:
        return self.delivered


def printed(output: io.BytesIO) -> list[Any]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_rows_are_printed_with_epoch_and_pair_sorted_by_pair() -> None:
    output = io.BytesIO()
    sink = PrintedSink(output, Log())
    assert sink.deliver(1, [("pair-1", table(3)), ("pair-0", table(1, 2))]) == 1
    assert printed(output) == [
        {"n": 1, "_epoch": 1, "_pair": "pair-0"},
        {"n": 2, "_epoch": 1, "_pair": "pair-0"},
        {"n": 3, "_epoch": 1, "_pair": "pair-1"},
    ]
    assert (sink.position(), sink.rows_out, sink.delivery) == (1, 3, SinkClass.AT_LEAST_ONCE)


def test_only_next_epoch_is_printed() -> None:
    output = io.BytesIO()
    sink = PrintedSink(output, Log())
    assert sink.deliver(2, [("pair-0", table(1))]) == 0
    assert sink.deliver(1, []) == 1
    assert sink.deliver(1, [("pair-0", table(1))]) == 1
    assert printed(output) == []


def test_new_merge_continues_at_delivered_epoch_of_log() -> None:
    output, log = io.BytesIO(), Log()
    sink = PrintedSink(output, log)
    log.delivered = 41
    assert sink.position() == 41
    assert sink.deliver(41, [("pair-0", table(1))]) == 41
    assert sink.deliver(42, [("pair-0", table(2))]) == 42
    assert [row["_epoch"] for row in printed(output)] == [42]


def test_closed_output_fails_and_can_be_retried() -> None:
    class Broken(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    sink = PrintedSink(Broken(), Log())
    with pytest.raises(SinkFailed):
        sink.deliver(1, [("pair-0", table(1))])
    assert (sink.position(), sink.rows_out) == (0, 0)


def test_ended_slot_is_sealed_when_all_slots_printed_its_last_epoch() -> None:
    log, everywhere = Log(), Log()
    sink = PrintedSink(io.BytesIO(), log, everywhere)
    log.delivered, everywhere.delivered = 9, 3
    assert sink.seal(1, 1, 4) == SlotPosition(position=3, sealed=False)
    everywhere.delivered = 5
    assert sink.seal(1, 1, 4) == SlotPosition(position=4, sealed=True)
    assert not sink.sealed

"""Every check of the ledger can fail: each is fed what must not be."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tandem_core.contract.intent import IntentStream
from tandem_runtime.protocol.log.entries import Lapsed, Seated, Trimmed, Vacated, Verified
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    Chunk,
    Header,
    LaneId,
    Mark,
    Note,
    ProtocolSettings,
    Segment,
    Span,
)
from tandem_simulator.engine.configuration import QUIET, Configuration, Partition, Row
from tandem_simulator.engine.demands import ChangePlan
from tandem_simulator.externals.shares import generation_of
from tandem_simulator.oracle.ledger import Ledger
from tandem_simulator.oracle.violation import BrokenError

LANE = LaneId("split-0.1", 1)
KEYS = frozenset(range(8))
ROWS = ((0, 0, 3, 1000), (0, 1, 5, 1500), (0, 2, 3, 2500))


def configuration() -> Configuration:
    return Configuration(
        seed=0,
        number=0,
        settings=ProtocolSettings(),
        nodes=("node-0",),
        splits=2,
        buckets=8,
        pairs=(("pair-0", KEYS),),
        slots=1,
        sinks=(("sink-0", True), ("sink-1", False)),
        streams=(IntentStream("stream-0", ("stream-0/0",)),),
        partitions=(Partition("stream-0/0", 0, 0, ROWS, (0, 0, 0), 0, forgets=True),),
        keys=8,
        faults_end=1000,
        beyond=False,
        noise=QUIET,
        changing=ChangePlan(),
        skews=((0, 0),),
    )


def ledger() -> Ledger:
    filled = Ledger(configuration())
    filled.generation_made(generation_of(1, (("pair-0", KEYS),)))
    return filled


def write_chunks(filled: Ledger) -> None:
    """Three chunks of one row each."""
    for number, row in enumerate(ROWS, 1):
        mark = Mark(row[1] + 1, row[3], rows=row[1] + 1)
        filled.chunk_written(LANE, number, chunk(row, mark=mark), 0)


def chunk(*rows: Row, mark: Mark | None = None) -> Chunk:
    segment = Segment("stream-0/0", rows[0][1], rows[0][1], len(rows), rows)
    return Chunk(Note(10, (("stream-0/0", mark),) if mark else ()), (segment,))


def header(epoch: int, *, generation: int = 1, first: int | None = None) -> Header:
    """The header of an epoch that takes in the chunk of the same number."""
    number = epoch if first is None else first
    at = ROWS[number - 1][3] if number <= len(ROWS) else BEGINNING_OF_TIME
    marks = (("stream-0/0", Mark(number, at, PartitionState.ACTIVE, rows=number)),)
    return Header(epoch, generation, (Span(LANE, number, number),), marks, (("stream-0", at),), 0)


FIRST = ((0, 3, 1, ((0, 0),)),)
"""The right output of epoch 1."""


@contextmanager
def breaks(invariant: int, kind: str) -> Iterator[None]:
    with pytest.raises(BrokenError) as caught:
        yield
    violation = caught.value.violation
    assert (violation.invariant, violation.kind) == (invariant, kind)
    assert violation.accounts


@pytest.fixture
def filled() -> Ledger:
    fresh = ledger()
    write_chunks(fresh)
    return fresh


def test_correct_account_violates_nothing(filled: Ledger) -> None:
    filled.header_seen(header(1), "somebody")
    filled.result("pair-0", header(1), FIRST, "pair-0a.1")
    filled.delivered("sink-0", 1, (("pair-0", FIRST),))
    filled.upserted("sink-1", 1, "pair-0", FIRST[0])
    filled.advanced("sink-1", 1, (("pair-0", FIRST),))
    assert filled.everywhere() == 1


def test_two_headers_for_one_epoch_are_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    with breaks(6, "two-headers"):
        filled.header_seen(header(1).replace(delivered=7), "another")


def named(found: Header, digest: str) -> Header:
    return found.replace(digest=digest)


def test_rebuilt_log_may_continue_either_history(filled: Ledger) -> None:
    old = [named(header(1), "a1"), named(header(2), "a2")]
    anew = named(header(1).replace(term=2), "b1")
    for shown in old:
        filled.header_seen(shown, "one")
    filled.rebuilt("", {}, "split-0.1")
    filled.header_seen(anew, "another")
    assert filled.expected.through == 1
    filled.rebuilt("a2", {1: old[0], 2: old[1]}, "split-1.1")
    assert (filled.expected.through, filled.expected.headers[1]) == (2, old[0])
    filled.rebuilt("b1", {}, "split-2.1")
    assert (filled.expected.through, filled.expected.headers[1]) == (1, anew)


def test_rebuilt_log_that_mixes_histories_is_detected(filled: Ledger) -> None:
    filled.header_seen(named(header(1), "a1"), "one")
    filled.header_seen(named(header(2), "a2"), "one")
    filled.rebuilt("", {}, "split-0.1")
    anew = named(header(1).replace(term=2), "b1")
    filled.header_seen(anew, "another")
    with breaks(6, "no-such-history"):
        filled.rebuilt("a2", {1: anew, 2: named(header(2), "a2")}, "split-1.1")


def test_rebuilt_log_with_unseen_header_is_detected(filled: Ledger) -> None:
    with breaks(6, "no-such-history"):
        filled.rebuilt("a1", {1: named(header(1), "a1")}, "split-1.1")


def test_delivered_header_binds_rebuilt_log(filled: Ledger) -> None:
    old, anew = named(header(1), "a1"), named(header(1).replace(term=2), "b1")
    filled.header_seen(old, "one")
    filled.rebuilt("", {}, "split-0.1")
    filled.header_seen(anew, "another")
    filled.delivered("sink-0", 1, (("pair-0", FIRST),))
    filled.rebuilt("a1", {1: old}, "split-1.1")
    with breaks(6, "two-headers"):
        filled.header_seen(old, "one more")


def test_falling_generation_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1, generation=2), "one")
    with breaks(7, "generation-fell"):
        filled.header_seen(header(2, generation=1), "one")


def test_header_after_final_one_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1).replace(final=True), "one")
    with breaks(6, "after-the-end"):
        filled.header_seen(header(2), "one")


def test_skipped_chunk_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    with breaks(1, "span-gap"):
        filled.header_seen(header(2, first=3), "one")


def test_unwritten_chunk_is_detected(filled: Ledger) -> None:
    for epoch in (1, 2, 3):
        filled.header_seen(header(epoch), "one")
    with breaks(3, "no-such-chunk"):
        filled.header_seen(header(4), "one")


def test_chunk_changed_after_its_header_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    with breaks(3, "chunk-changed"):
        filled.chunk_written(LANE, 1, chunk(ROWS[1]), 0)


def test_chunk_with_two_contents_is_detected(filled: Ledger) -> None:
    filled.chunk_written(LANE, 1, chunk(ROWS[1]), 0)
    with breaks(3, "no-such-chunk"):
        filled.header_seen(header(1), "one")


@pytest.mark.parametrize(
    ("row", "invariant", "kind"), [(1, 1, "rows-missing"), (0, 2, "rows-twice")]
)
def test_rows_out_of_order_are_detected(row: int, invariant: int, kind: str) -> None:
    filled = ledger()
    rows = (ROWS[row],) if row else (ROWS[0], ROWS[0])
    filled.chunk_written(LANE, 1, chunk(*rows), 0)
    with breaks(invariant, kind):
        filled.header_seen(header(1), "one")


def test_mark_that_contradicts_rows_is_detected(filled: Ledger) -> None:
    wrong = (("stream-0/0", Mark(2, 1000)),)
    with breaks(1, "wrong-mark"):
        filled.header_seen(header(1).replace(marks=wrong), "one")


def test_partition_ended_before_its_last_row_is_detected(filled: Ledger) -> None:
    wrong = (("stream-0/0", Mark(1, 1000, PartitionState.ENDED, rows=1)),)
    with breaks(1, "ended-early"):
        filled.header_seen(header(1).replace(marks=wrong), "one")


@pytest.mark.parametrize("watermark", [999, 1001])
def test_watermark_other_than_minimum_is_detected(filled: Ledger, watermark: int) -> None:
    with breaks(7, "watermark"):
        filled.header_seen(header(1).replace(watermarks=(("stream-0", watermark),)), "one")


def test_partition_marked_idle_while_source_has_rows_is_detected() -> None:
    idle = Note(0, (("stream-0/0", Mark(1, 1000, PartitionState.IDLE)),))
    ledger().chunk_written(LANE, 1, Chunk(idle, ()), 500)
    with breaks(7, "idle-with-rows"):
        ledger().chunk_written(LANE, 1, Chunk(idle, ()), 5000)


def test_result_from_lost_state_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    with breaks(4, "wrong-result"):
        filled.result("pair-0", header(1), ((0, 3, 2, ((0, 0),)),), "pair-0a.1")


@pytest.mark.parametrize(("rows", "invariant"), [((), 1), (FIRST + FIRST, 2)])
def test_wrong_delivery_is_detected(
    filled: Ledger, rows: tuple[tuple[object, ...], ...], invariant: int
) -> None:
    filled.header_seen(header(1), "one")
    with breaks(invariant, "wrong-delivery"):
        filled.delivered("sink-0", 1, (("pair-0", rows),))


def test_corrupted_answer_may_be_delivered(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    spoilt = ((0, 3, -1, ((0, 0),)),)
    filled.corrupted["pair-0", 1] = spoilt
    filled.delivered("sink-0", 1, (("pair-0", spoilt),))


def test_epoch_delivered_twice_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    filled.delivered("sink-0", 1, (("pair-0", FIRST),))
    with breaks(2, "delivered-twice"):
        filled.delivered("sink-0", 1, (("pair-0", FIRST),))


def test_skipped_epoch_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    filled.header_seen(header(2), "one")
    with breaks(1, "epoch-skipped"):
        filled.delivered("sink-0", 2, (("pair-0", ()),))


def test_delivery_without_header_is_detected(filled: Ledger) -> None:
    with breaks(6, "no-header"):
        filled.delivered("sink-0", 1, (("pair-0", FIRST),))


def test_answers_of_pairs_outside_generation_are_detected(filled: Ledger) -> None:
    filled.generation_made(generation_of(2, (("pair-1", KEYS),)))
    filled.header_seen(header(1), "one")
    with breaks(2, "wrong-pairs"):
        filled.delivered("sink-0", 1, (("pair-1", FIRST),))


def test_row_upserted_after_its_epoch_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    filled.upserted("sink-1", 1, "pair-0", FIRST[0])
    filled.advanced("sink-1", 1, (("pair-0", FIRST),))
    with breaks(2, "delivered-twice"):
        filled.upserted("sink-1", 1, "pair-0", FIRST[0])


def test_wrong_upserted_row_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    with breaks(2, "wrong-delivery"):
        filled.upserted("sink-1", 1, "pair-0", (0, 3, 9, ((0, 0),)))


def test_idempotent_sink_that_advances_without_its_rows_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    with breaks(1, "wrong-delivery"):
        filled.advanced("sink-1", 1, (("pair-0", FIRST),))


def test_erasing_last_copy_of_needed_chunk_is_detected(filled: Ledger) -> None:
    filled.header_seen(header(1), "one")
    filled.chunk_erased(LANE, 1, "split-0.1", [{("chunk", LANE, 1): None}])
    with breaks(5, "erased-untrimmed"):
        filled.chunk_erased(LANE, 1, "split-0.1", [{}])


def test_erasing_last_copy_of_acknowledged_rows_is_detected(filled: Ledger) -> None:
    filled.chunk_erased(LANE, 1, "split-0.1", [{}])
    filled.acknowledge(0, 1)
    with breaks(1, "erased-uncut"):
        filled.chunk_erased(LANE, 1, "split-0.1", [{}])


def test_completion_without_every_row_is_detected(filled: Ledger) -> None:
    with breaks(1, "completed-early"):
        filled.finish()
    filled.header_seen(header(1).replace(final=True), "one")
    filled.dealt.whole = {"sink-0": 1, "sink-1": 1}
    with breaks(1, "rows-missing"):
        filled.finish()


def test_completion_with_open_windows_is_detected(filled: Ledger) -> None:
    for epoch in (1, 2, 3):
        filled.header_seen(header(epoch).replace(final=epoch == 3), "one")
    filled.dealt.whole = {"sink-0": 3, "sink-1": 3}
    with breaks(7, "windows-open"):
        filled.finish()


def record(filled: Ledger, *entries: object, term: int = 1, first: int = 1, sinks: int = 9) -> None:
    for number, entry in enumerate(entries, first):
        filled.holders.wrote(term, number, entry, sinks)


def test_trim_point_past_seated_joiner_is_detected(filled: Ledger) -> None:
    filled.committed("a", 5)
    record(
        filled, Seated("pair-0", 0, "a"), Verified("pair-0", 0, "a", 0), Seated("pair-0", 1, "b")
    )
    with breaks(5, "trim-past-holder"):
        record(filled, Trimmed(3), first=4)


def test_trim_point_past_commits_of_volume_is_detected(filled: Ledger) -> None:
    filled.committed("a", 2)
    record(filled, Seated("pair-0", 0, "a"), Verified("pair-0", 0, "a", 0), Trimmed(2))
    with breaks(5, "trim-past-holder"):
        record(filled, Trimmed(3), first=4)


def test_trim_point_past_sink_is_detected(filled: Ledger) -> None:
    with breaks(5, "trim-undelivered"):
        record(filled, Trimmed(3), sinks=2)


def test_lapse_without_full_twin_is_detected(filled: Ledger) -> None:
    both = (Seated("pair-0", 0, "a"), Seated("pair-0", 1, "b"))
    with breaks(5, "lapse-without-twin"):
        record(filled, *both, Lapsed("pair-0", 0, "a"))


def test_lapsed_or_vacated_seat_does_not_hold_trim_point(filled: Ledger) -> None:
    filled.committed("a", 5)
    record(
        filled,
        Seated("pair-0", 0, "a"),
        Verified("pair-0", 0, "a", 0),
        Seated("pair-0", 1, "b"),
        Lapsed("pair-0", 1, "b"),
        Trimmed(4),
        Vacated("pair-0", 1, "b", "gone"),
        Trimmed(5),
    )
    assert filled.holders.trim == 5


def test_entries_replaced_by_higher_term_do_not_count(filled: Ledger) -> None:
    filled.committed("a", 5)
    record(
        filled, Seated("pair-0", 0, "a"), Verified("pair-0", 0, "a", 0), Seated("pair-0", 1, "b")
    )
    filled.holders.snapshot(2, 2)
    record(filled, Trimmed(4), term=2, first=3)
    assert filled.holders.trim == 4

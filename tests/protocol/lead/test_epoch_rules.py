"""What the lead decides about epochs: when to cut, what goes in, where time stands, the end."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.builders import (
    A1,
    B1,
    G1,
    G2,
    PROPERTY,
    S,
    generation,
    header,
    intent,
    make_reports,
    note,
    record,
    replica_report,
    running_state,
    seated,
    state_of,
)

from tandem_core.contract.intent import Intent, IntentStream
from tandem_runtime.protocol.lead.epoch_rules import complete_pipeline, cut_epoch, is_keeping_up
from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log.entries import (
    Completed,
    Entry,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    PartitionOwned,
    Trimmed,
    Verified,
)
from tandem_runtime.protocol.log.history import with_digest
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    Header,
    LaneId,
    Mark,
    Note,
    ProtocolSettings,
    Span,
)

DUE = S.interval
TERM = 4
Notes = Mapping[LaneId, Mapping[int, Note]]


def heard(
    notes: Notes | None = None, known: Intent | None = None, committed: int = 0
) -> PeerReports:
    replicas = {"x0": replica_report(committed)}
    return make_reports(known=known or intent(), notes=notes, replicas=replicas)


def headers(
    log_state: LogState, reports: PeerReports, since: int = DUE, settings: ProtocolSettings = S
) -> list[Header]:
    found: list[Header] = []
    for entry in cut_epoch(log_state, reports, settings, since, TERM):
        assert isinstance(entry, Header)
        found.append(entry)
    return found


def rows(number: int, state: PartitionState = PartitionState.ACTIVE, size: int = 10) -> Note:
    return note(size, p=Mark(number, number * 100, state))


# --- when -----------------------------------------------------------------------------------------


def test_no_header_is_cut_without_new_chunks() -> None:
    assert headers(running_state(), heard()) == []


def test_new_chunks_wait_for_interval() -> None:
    reports = heard({A1: {1: rows(1)}})
    assert headers(running_state(), reports, DUE - 1) == []
    (found,) = headers(running_state(), reports, DUE)
    right = header(1, Span(A1, 1, 1), marks={"p": Mark(1, 100)}, watermarks={"s": 100}, term=TERM)
    assert found == with_digest(right)


def test_epochs_are_consecutive_and_chunks_have_no_gap() -> None:  # [1] [6]
    log_state = running_state(header(1, Span(A1, 1, 2)))
    (found,) = headers(log_state, heard({A1: {3: rows(3), 4: rows(4), 6: rows(6)}}))
    assert (found.epoch, found.spans) == (2, (Span(A1, 3, 4),))
    assert headers(log_state, heard({A1: {4: rows(4)}})) == []


def test_no_header_is_cut_without_intent_or_generation_or_after_final() -> None:
    notes = {A1: {1: rows(1)}}
    assert headers(running_state(), make_reports(notes=notes)) == []
    assert headers(state_of(LaneOpened(A1, "b")), heard(notes)) == []
    assert headers(running_state(header(1, final=True)), heard(notes)) == []


def test_spans_follow_order_of_lane_opening() -> None:  # [4]
    log_state = running_state(LaneOpened(B1, "a"))
    (found,) = headers(log_state, heard({B1: {1: note()}, A1: {1: rows(1)}}))
    assert found.spans == (Span(A1, 1, 1), Span(B1, 1, 1))


@pytest.mark.parametrize("state", [PartitionState.RELEASED, PartitionState.ENDED])
def test_released_or_ended_partition_triggers_cut(state: PartitionState) -> None:
    assert len(headers(running_state(), heard({A1: {1: rows(1, state)}}), 0)) == 1


@pytest.mark.parametrize("state", [PartitionState.ACTIVE, PartitionState.IDLE])
def test_active_or_idle_partition_does_not_trigger_cut(state: PartitionState) -> None:
    assert headers(running_state(), heard({A1: {1: rows(1, state)}}), 0) == []


def test_rest_of_closed_lane_triggers_cut() -> None:
    log_state = running_state(LaneClosing(A1), LaneClosed(A1, 1, ((1, rows(1)),)))
    (found,) = headers(log_state, heard(), 0)
    assert found.spans == (Span(A1, 1, 1),)


def test_closed_lane_contributes_nothing_beyond_its_end() -> None:  # close-at-report [3]
    log_state = running_state(LaneClosing(A1), LaneClosed(A1, 1, ()))
    (found,) = headers(log_state, heard({A1: {1: rows(1), 2: rows(2)}}), 0)
    assert found.spans == (Span(A1, 1, 1),)
    log_state.apply(found)
    assert headers(log_state, heard({A1: {2: rows(2)}}), 0) == []


def test_raised_watermark_is_followed_by_one_empty_epoch() -> None:
    log_state = running_state(header(1, watermarks={"s": 50}))
    assert headers(log_state, heard(), DUE - 1) == []
    (found,) = headers(log_state, heard())
    assert (found.epoch, found.spans, found.watermarks) == (2, (), (("s", 50),))
    log_state.apply(found)
    assert headers(log_state, heard()) == []


def test_header_carries_delivered_epoch() -> None:
    reports = heard({A1: {2: rows(2)}}, committed=1)
    reports.delivered = {0: 1}
    (found,) = headers(running_state(header(1, Span(A1, 1, 1))), reports)
    assert found.delivered == 1


# --- bounds ---------------------------------------------------------------------------------------


def test_cutting_pauses_while_faster_replica_is_max_uncommitted_behind() -> None:  # [12]
    settings = S._replace(max_uncommitted=2)
    log_state = running_state(header(1), header(2))
    notes = {A1: {1: rows(1)}}
    assert headers(log_state, heard(notes), settings=settings) == []
    assert len(headers(log_state, heard(notes, committed=1), settings=settings)) == 1


def test_one_lagging_pair_pauses_cutting() -> None:
    wide = generation(1, "x", "v")
    log_state = state_of(
        GenerationKnown(wide, 1), *seated("x", "x0"), *seated("v", "v0"), header(1)
    )
    settings = S._replace(max_uncommitted=1)
    reports = make_reports(replicas={"x0": replica_report(1)})
    assert not is_keeping_up(log_state, reports, settings, 1)
    reports = make_reports(replicas={"x0": replica_report(1), "v0": replica_report(1, pair="v")})
    assert is_keeping_up(log_state, reports, settings, 1)


def test_header_respects_max_epoch_bytes() -> None:  # [12]
    settings = S._replace(max_epoch_bytes=25)
    notes = {A1: {n: rows(n) for n in (1, 2, 3)}, B1: {1: note(5), 2: note(1)}}
    log_state = running_state(LaneOpened(B1, "a"))
    (found,) = headers(log_state, heard(notes), settings=settings)
    assert found.spans == (Span(A1, 1, 2), Span(B1, 1, 1))
    assert dict(found.marks)["p"].position == 2


def test_full_epoch_is_cut_before_interval() -> None:
    settings = S._replace(max_epoch_bytes=20)
    two, three = ({A1: {n: rows(n) for n in range(1, most)}} for most in (3, 4))
    assert headers(running_state(), heard(two), 0, settings=settings) == []
    (found,) = headers(running_state(), heard(three), 0, settings=settings)
    assert found.spans == (Span(A1, 1, 2),)


def test_chunks_that_exactly_fill_epoch_are_taken() -> None:  # [12]
    settings = S._replace(max_epoch_bytes=20)
    notes = {A1: {n: rows(n) for n in (1, 2, 3)}, B1: {1: note(0)}}
    (found,) = headers(running_state(LaneOpened(B1, "a")), heard(notes), settings=settings)
    assert found.spans == (Span(A1, 1, 2),)


def test_chunk_of_second_lane_respects_byte_bound() -> None:  # [12]
    settings = S._replace(max_epoch_bytes=25)
    notes = {A1: {1: rows(1)}, B1: {1: note(16)}}
    (found,) = headers(running_state(LaneOpened(B1, "a")), heard(notes), settings=settings)
    assert found.spans == (Span(A1, 1, 1),)


def test_oversized_chunk_is_taken_alone() -> None:  # [12]
    settings = S._replace(max_epoch_bytes=3)
    notes = {A1: {1: rows(1), 2: rows(2)}}
    (found,) = headers(running_state(), heard(notes), settings=settings)
    assert found.spans == (Span(A1, 1, 1),)


# --- generations along headers ------------------------------------------------------------------


def test_new_target_generation_triggers_cut() -> None:  # [7]
    log_state = running_state(
        header(1), GenerationKnown(G2, 2), *seated("y", "y0"), *seated("z", "z0")
    )
    reports = heard(known=intent(G1, G2, version=2, target=2), committed=1)
    (found,) = headers(log_state, reports, 0)
    assert (found.epoch, found.generation) == (2, 2)


def test_first_generation_alone_does_not_trigger_cut() -> None:
    assert headers(running_state(), heard(), 0) == []


# --- time -----------------------------------------------------------------------------------------


TWO = Intent(1, (G1,), 1, (IntentStream("s", ("p", "q"), delay=10),))


def watermark(log_state: LogState, marks: Mapping[str, Mark], known: Intent = TWO) -> int:
    full = log_state.copy()
    full.marks = dict(marks)
    (found,) = headers(full, heard({A1: {full.lanes[A1].reach + 1: note()}}, known))
    return dict(found.watermarks)["s"]


def test_watermark_is_minimum_less_delay() -> None:
    assert watermark(running_state(), {"p": Mark(1, 100), "q": Mark(1, 70)}) == 60


def test_partition_without_rows_holds_watermark() -> None:
    assert watermark(running_state(), {"p": Mark(1, 100)}) == BEGINNING_OF_TIME


def test_released_partition_holds_watermark() -> None:
    found = watermark(
        running_state(), {"p": Mark(1, 100), "q": Mark(1, 70, PartitionState.RELEASED)}
    )
    assert found == 60


@pytest.mark.parametrize("state", [PartitionState.IDLE, PartitionState.ENDED])
def test_only_idle_or_ended_partitions_leave_watermark_minimum(state: PartitionState) -> None:
    found = watermark(running_state(), {"p": Mark(1, 100), "q": Mark(1, 70, state)})
    assert found == 90


def test_watermark_never_falls() -> None:
    log_state = running_state(header(1, watermarks={"s": 80}))
    assert watermark(log_state, {"p": Mark(1, 100), "q": Mark(1, 70)}) == 80


def test_watermark_stands_still_when_all_partitions_are_idle() -> None:
    log_state = running_state(header(1, watermarks={"s": 80}))
    states = {"p": Mark(1, 200, PartitionState.IDLE), "q": Mark(1, 300, PartitionState.IDLE)}
    assert watermark(log_state, states) == 80
    assert watermark(running_state(), states) == BEGINNING_OF_TIME
    assert watermark(log_state, {**states, "q": Mark(1, 300, PartitionState.ENDED)}) == 80


def test_watermark_is_end_of_time_when_all_partitions_ended() -> None:
    states = {"p": Mark(1, 200, PartitionState.ENDED), "q": Mark(1, 300, PartitionState.ENDED)}
    assert watermark(running_state(), states) == END_OF_TIME


@PROPERTY
@given(
    st.lists(
        st.tuples(
            st.integers(0, 300),
            st.sampled_from(PartitionState),
        )
    )
)
def test_headers_never_lower_watermark_or_skip_chunk(
    steps: list[tuple[int, PartitionState]],
) -> None:  # [1] [7]
    log_state = running_state()
    reach, last = 0, BEGINNING_OF_TIME
    for number, (time, state) in enumerate(steps, 1):
        before = log_state.marks["p"].state if log_state.epoch else PartitionState.ACTIVE
        if before is PartitionState.RELEASED:
            log_state.apply(PartitionOwned("p", A1))
        mark = Mark(number, time, before if before is PartitionState.ENDED else state)
        reports = heard({A1: {number: note(1, p=mark)}}, committed=log_state.epoch)
        for found in headers(log_state, reports):
            log_state.apply(found)
            assert dict(found.watermarks)["s"] >= last
            last = dict(found.watermarks)["s"]
            for span in found.spans:
                assert span.first == reach + 1
                reach = span.last
    assert log_state.final or reach == len(steps)


# --- the end --------------------------------------------------------------------------------------


def all_ended(*more: Entry) -> LogState:
    at_end = header(
        2, marks={"p": Mark(1, 100, PartitionState.ENDED)}, watermarks={"s": END_OF_TIME}
    )
    return running_state(header(1), at_end, *more)


def test_end_of_time_is_followed_by_final_header() -> None:
    log_state = running_state(header(1))
    (end,) = headers(log_state, heard({A1: {1: rows(1, PartitionState.ENDED)}}))
    assert (dict(end.watermarks)["s"], end.final) == (END_OF_TIME, False)
    log_state.apply(end)
    (final,) = headers(log_state, heard(committed=1), 0)
    assert (final.spans, final.final) == ((), True)


def test_ended_pipeline_without_rows_reaches_end_of_time() -> None:
    log_state = running_state(
        header(1, marks={"p": Mark(0, 0, PartitionState.ENDED)}, watermarks={"s": 5})
    )
    log_state.raised = False
    (end,) = headers(log_state, heard())
    assert (dict(end.watermarks)["s"], end.final) == (END_OF_TIME, False)


def test_late_rows_after_end_of_time_defer_final_header() -> None:  # [1]
    log_state = all_ended(LaneOpened(B1, "a"))
    (found,) = headers(log_state, heard({B1: {1: note()}}, committed=1))
    assert (found.final, found.spans) == (False, (Span(B1, 1, 1),))


def test_one_open_partition_defers_final_header() -> None:
    log_state = running_state(
        header(1, marks={"p": Mark(1, 1, PartitionState.ENDED)}, watermarks={"s": END_OF_TIME}),
        PartitionOwned("q", A1),
    )
    log_state.raised = False
    assert headers(log_state, heard(known=TWO)) == []
    two = {"p": Mark(1, 1, PartitionState.ENDED), "q": Mark(1, 1, PartitionState.IDLE)}
    log_state.marks = dict(two)
    assert headers(log_state, heard(known=TWO)) == []


def test_pipeline_completes_once_final_epoch_is_delivered() -> None:
    log_state = running_state(header(1), header(2, final=True))
    assert list(complete_pipeline(log_state, make_reports(delivered=1), 0)) == []
    assert list(complete_pipeline(log_state, make_reports(delivered=2), 0)) == [Completed()]
    log_state.apply(Completed())
    assert list(complete_pipeline(log_state, make_reports(delivered=2), 0)) == []
    assert list(complete_pipeline(running_state(header(1)), make_reports(delivered=1), 0)) == []


def test_pair_without_full_members_counts_as_at_epoch_0() -> None:
    log_state = state_of(GenerationKnown(G1, 1), header(1), header(2))
    assert is_keeping_up(log_state, make_reports(), S._replace(max_uncommitted=3), 1)
    assert not is_keeping_up(log_state, make_reports(), S._replace(max_uncommitted=2), 1)
    record(log_state, Verified("x", 0, "x0", 1))
    assert is_keeping_up(log_state, make_reports(), S._replace(max_uncommitted=2), 1)


# --- history --------------------------------------------------------------------------------------


def test_header_carries_term_and_digest_of_previous_header() -> None:  # (i)
    log_state = running_state(header(1))
    (found,) = headers(log_state, heard({A1: {1: rows(1)}}), DUE)
    assert (found.term, found.previous) == (TERM, header(1).digest)
    trimmed = running_state(header(1), Trimmed(1))
    (after,) = headers(trimmed, heard({A1: {1: rows(1)}}), DUE)
    assert after == found
    (first,) = headers(running_state(), heard({A1: {1: rows(1)}}), DUE)
    assert (first.previous, first.digest != found.digest) == ("", True)

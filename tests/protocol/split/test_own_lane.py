"""A lane as its owner keeps it: rows in, chunks sealed on two volumes, then acknowledged."""

import pytest
from tests.protocol.builders import A1, S, of, only, sent

from tandem_runtime.protocol.effects import Acknowledge, Effect, Erase, Pull, Ship, Write
from tandem_runtime.protocol.log.replicated_log import OwnedLog
from tandem_runtime.protocol.messages.peers import CopyChunk, Owned, SourceRows
from tandem_runtime.protocol.split.own_lane import COPIES_AT_ONCE, NOTES_AT_ONCE, OnItsWay, OwnLane
from tandem_runtime.protocol.states import Bond, PartitionState
from tandem_runtime.protocol.types import Chunk, Mark, Note, ProtocolSettings, Segment

V = (1, 1)


def rows(
    position: int = 0,
    end: int = 1,
    *,
    partition: str = "p",
    size: int = 10,
    time: int = 100,
    ended: bool = False,
    forgotten: bool = False,
    rejected: int = 0,
) -> SourceRows:
    return SourceRows(
        partition,
        position,
        end,
        size,
        time,
        ended,
        forgotten,
        f"rows {position}-{end}",
        rows=end - position,
        rejected=rejected,
    )


def owned(partition: str = "p", position: int = 0, time: int = -50, tenure: int = 1) -> Owned:
    return Owned(partition, A1, Mark(position, time), tenure)


def lane(buddy: str | None = None, settings: ProtocolSettings = S, **more: int) -> OwnLane:
    found = OwnLane(A1, buddy, settings, now=0)
    for partition, position in {"p": 0, **more}.items():
        found.own(owned(partition, position))
    return found


def fed(found: OwnLane, *messages: SourceRows, now: int = 0) -> OwnLane:
    for message in messages:
        found.pulls(now)
        found.rows_came(message, now)
    return found


def ack(found: OwnLane, through: int, now: int = 0) -> bool:
    return found.log.copied("b", found.log.fence, through, now)


def sealed(found: OwnLane, now: int = S.interval) -> list[Effect]:
    return found.seal(V, now)


# --- asking sources -----------------------------------------------------------------------


def test_new_lane_is_paired_with_its_recorded_buddy() -> None:  # [8]
    assert (lane("b").log.bond, lane("b").log.follower) == (Bond.PAIRED, "b")
    assert lane().log.bond is Bond.ALONE


def test_reading_resumes_at_position_of_last_header() -> None:  # [9]
    found = lane(q=7)
    assert found.pulls(0) == [Pull("p", 0), Pull("q", 7)]


def test_one_pull_per_source_is_under_way() -> None:
    found = lane()
    assert len(found.pulls(0)) == 1
    assert found.pulls(S.silence - 1) == []
    assert found.pulls(S.silence) == [Pull("p", 0)]
    fed(found, rows(0, 3), now=S.silence)
    assert found.pulls(S.silence) == [Pull("p", 3)]


def test_repeated_assignment_is_ignored_but_later_tenure_resets_position() -> None:  # [9]
    found = fed(lane(), rows(0, 3))
    found.own(owned(position=0, tenure=1))
    assert found.readings["p"].position == 3
    found.release("p")
    found.own(owned(position=2, tenure=2))
    reading = found.readings["p"]
    assert (reading.position, reading.state, reading.tenure) == (2, PartitionState.ACTIVE, 2)


def test_full_lane_does_not_pull_but_empty_one_always_does() -> None:  # [12]
    settings = S._replace(max_lane_bytes=10)
    assert len(lane(settings=settings).pulls(0)) == 1
    found = fed(lane(settings=settings), rows(size=10))
    assert found.pulls(0) == []
    sealed(found)
    assert found.pulls(0) == []
    found.trim(1)
    assert len(found.pulls(0)) == 1
    tiny = lane(settings=S._replace(max_lane_bytes=0))
    assert len(tiny.pulls(0)) == 1


def test_lane_just_below_bound_still_pulls() -> None:  # [12]
    found = fed(lane(settings=S._replace(max_lane_bytes=11)), rows(size=10))
    assert len(found.pulls(0)) == 1


def test_ending_lane_neither_pulls_nor_accepts_rows() -> None:
    found = lane()
    found.pulls(0)
    found.ending = True
    found.rows_came(rows(), 0)
    assert (found.pulls(S.silence), found.rows, found.readings["p"].position) == ([], [], 0)


# --- rows ---------------------------------------------------------------------------------


def test_rows_advance_partition_and_wait_for_chunk() -> None:
    found = fed(lane(), rows(0, 2, time=300), rows(2, 3, time=200))
    reading = found.readings["p"]
    assert (reading.position, reading.event_time, reading.state) == (3, 300, PartitionState.ACTIVE)
    assert [each.payload for each in found.rows] == ["rows 0-2", "rows 2-3"]
    assert found.rows_size == 20
    assert found.changed == {"p"}


@pytest.mark.parametrize(
    "message", [rows(5, 6), rows(partition="other")], ids=["another position", "not owned"]
)
def test_answers_to_earlier_pulls_are_ignored(message: SourceRows) -> None:  # [11]
    found = fed(lane(), message)
    assert (found.rows, found.changed) == ([], set())


def test_repeated_answer_counts_once() -> None:  # [2] [11]
    found = fed(lane(), rows(0, 2))
    found.rows_came(rows(0, 2), 0)
    assert [each.payload for each in found.rows] == ["rows 0-2"]
    found.rows_came(rows(2, 3), 0)
    assert [each.payload for each in found.rows] == ["rows 0-2"]


def test_released_or_ended_partition_accepts_no_rows() -> None:  # [9]
    found = lane()
    found.pulls(0)
    found.release("p")
    found.rows_came(rows(), 0)
    assert found.rows == []
    ended = fed(lane(), rows(0, 2, ended=True))
    assert ended.readings["p"].state == PartitionState.ENDED
    assert ended.pulls(S.silence) == []


def test_empty_answer_only_completes_pull() -> None:
    found = fed(lane(), rows(0, 0, size=0))
    assert (found.changed, found.readings["p"].pulled_at) == (set(), None)
    assert found.readings["p"].event_time == -50
    assert found.pulls(1) == [Pull("p", 0)]


def test_end_without_rows_marks_partition_changed() -> None:
    found = fed(lane(), rows(0, 0, size=0, ended=True))
    assert (found.changed, found.rows, found.rows_size) == ({"p"}, [], 0)
    assert found.readings["p"].state == PartitionState.ENDED


def test_rows_forgotten_by_source_are_lost() -> None:  # DataLost
    found = fed(lane(), rows(forgotten=True))
    assert (found.lost, found.rows, found.changed) == ({"p"}, [], set())
    assert found.pulls(0) == []
    assert len(found.pulls(S.silence)) == 1


# --- idle ---------------------------------------------------------------------------------


def idle_at(found: OwnLane, now: int, timeout: int | None = 600, *, answered: bool = True) -> str:
    """The state after a tick, before which the source said that it has nothing."""
    if answered:
        found.pulls(now)
        position = found.readings["p"].position
        found.rows_came(rows(size=0).replace(position=position, end=position), now)
    found.grow_idle({"p": timeout}, now)
    return found.readings["p"].state


def test_partition_is_idle_after_timeout_without_rows() -> None:
    found = lane()
    assert idle_at(found, 100) == PartitionState.ACTIVE
    assert idle_at(found, 699) == PartitionState.ACTIVE
    assert idle_at(found, 700) == PartitionState.IDLE
    assert found.changed == {"p"}


def test_slowly_answering_source_is_not_idle() -> None:
    found = lane()
    found.pulls(0)
    for now in range(100, 5000, 100):
        assert idle_at(found, now, answered=False) == PartitionState.ACTIVE


def test_source_not_pulled_by_full_lane_is_not_idle() -> None:
    found = lane(settings=S._replace(max_lane_bytes=10))
    assert idle_at(found, 0) == PartitionState.ACTIVE
    found.rows_size = 10
    for now in range(100, 5000, 100):
        assert idle_at(found, now) == PartitionState.ACTIVE
    found.rows_size = 0
    assert idle_at(found, 5000) == PartitionState.IDLE


def test_partition_is_never_idle_without_timeout() -> None:
    found = lane()
    found.pulls(0)
    for now in range(0, 9000, 1000):
        assert idle_at(found, now, None) == PartitionState.ACTIVE
    found.grow_idle({}, 9500)
    assert found.readings["p"].state == PartitionState.ACTIVE


def test_rows_reactivate_partition_and_restart_its_timeout() -> None:
    found = lane()
    found.pulls(0)
    assert idle_at(found, 700) == PartitionState.IDLE
    found.pulls(800)
    found.rows_came(rows(0, 1), 800)
    assert found.readings["p"].state == PartitionState.ACTIVE
    assert idle_at(found, 1400) == PartitionState.ACTIVE
    assert idle_at(found, 1999) == PartitionState.ACTIVE
    assert idle_at(found, 2000) == PartitionState.IDLE


def test_time_while_process_was_paused_does_not_count_as_idle() -> None:
    found = lane()
    found.pulls(0)
    assert idle_at(found, S.silence) == PartitionState.ACTIVE
    assert idle_at(found, S.silence + 599) == PartitionState.ACTIVE
    assert idle_at(found, S.silence + 600) == PartitionState.IDLE


def test_partition_with_lost_rows_is_not_idle() -> None:
    found = fed(lane(), rows(forgotten=True))
    assert idle_at(found, 700) == PartitionState.ACTIVE
    found.lost.clear()
    assert idle_at(found, 701) == PartitionState.IDLE


def test_time_while_source_is_unreadable_does_not_count_as_idle() -> None:
    found = lane()
    found.pulls(0)
    found.rows_came(rows(0, 0).replace(unreadable=True), 300)
    for now in range(400, 3 * S.silence, 100):
        found.pulls(now)
        assert idle_at(found, now, answered=False) == PartitionState.ACTIVE
    assert (found.rows, found.changed, found.lost) == ([], set(), set())
    again = 3 * S.silence
    fed(found, rows(0, 0, size=0), now=again)
    found.pulls(again)
    assert idle_at(found, again + 599) == PartitionState.ACTIVE
    assert idle_at(found, again + 600) == PartitionState.IDLE


def test_unreadable_idle_partition_holds_watermark_again() -> None:
    found = lane()
    found.pulls(0)
    assert idle_at(found, 700) == PartitionState.IDLE
    sealed(found, 1000)
    found.pulls(1100)
    found.rows_came(rows(0, 0).replace(unreadable=True), 1100)
    assert sealed(found, 1100 + S.interval // 2 - 1) == []
    sealed(found, 1100 + S.interval // 2)
    assert found.notes[2] == Note(0, (("p", Mark(0, -50, PartitionState.ACTIVE)),))


def test_unreadable_source_is_pulled_again_after_silence() -> None:
    found = fed(lane(), rows(0, 0).replace(unreadable=True))
    assert found.pulls(S.silence - 1) == []
    assert found.pulls(S.silence) == [Pull("p", 0)]


def test_ending_lane_marks_no_partition_idle() -> None:
    found = lane()
    found.pulls(0)
    found.ending = True
    assert idle_at(found, 700) == PartitionState.ACTIVE


# --- suspended ------------------------------------------------------------------------------


def test_suspended_lane_does_not_pull_and_resumes_at_its_position() -> None:
    found = fed(lane(), rows(0, 2))
    found.suspended = True
    assert found.pulls(S.silence) == []
    assert len(of(Write, sealed(found, S.interval))) == 1
    found.suspended = False
    assert found.pulls(S.silence) == [Pull("p", 2)]


def test_suspended_lane_accepts_rows_already_requested() -> None:
    found = lane()
    found.pulls(0)
    found.suspended = True
    found.rows_came(rows(0, 2), 1)
    assert found.readings["p"].position == 2
    assert found.pulls(1) == []


def test_suspended_lane_marks_nothing_idle_and_restarts_timeout() -> None:
    found = lane()
    found.pulls(0)
    found.suspended = True
    for now in (300, 700, 900):
        assert idle_at(found, now, answered=False) == PartitionState.ACTIVE
    found.suspended = False
    assert idle_at(found, 1499) == PartitionState.ACTIVE
    assert idle_at(found, 1500) == PartitionState.IDLE


# --- letting go ---------------------------------------------------------------------------


def test_released_partition_is_in_next_chunk_and_then_forgotten() -> None:  # [9]
    found = fed(lane(), rows(0, 2))
    found.release("p")
    found.disown(set())
    assert found.readings["p"].state == PartitionState.RELEASED
    (write, *_) = of(Write, sealed(found, 0))
    chunk = write.value
    assert isinstance(chunk, Chunk)
    assert chunk.note.marks == (("p", Mark(2, 100, PartitionState.RELEASED, rows=2)),)
    found.disown({"p"})
    assert "p" in found.readings
    found.disown(set())
    assert found.readings == {}


def test_only_owned_unreleased_partition_is_read() -> None:
    found = lane()
    assert found.reads("p")
    assert not found.reads("q")
    found.release("p")
    assert not found.reads("p")


def test_only_partition_being_read_can_be_released() -> None:
    found = fed(lane(), rows(0, 1, ended=True))
    sealed(found)
    found.release("p")
    found.release("unknown")
    assert (found.readings["p"].state, found.changed) == (PartitionState.ENDED, set())
    found.disown(set())
    assert "p" in found.readings


def test_idle_partition_can_be_released() -> None:
    found = lane()
    found.pulls(0)
    assert idle_at(found, 700) == PartitionState.IDLE
    found.release("p")
    assert found.readings["p"].state == PartitionState.RELEASED


# --- chunks -------------------------------------------------------------------------------


def test_chunk_is_sealed_after_half_interval() -> None:
    found = fed(lane("b"), rows(0, 2), now=100)
    assert sealed(found, 349) == []
    effects = sealed(found, 350)
    note = Note(10, (("p", Mark(2, 100, rows=2)),))
    key = ("chunk", A1, 1)
    assert effects[0] == Write(key, Chunk(note, (Segment("p", 0, 0, 2, "rows 0-2"),)))
    assert effects[1] == Ship("b", CopyChunk(A1, (0, 0), V, 0, 1), (key,))
    assert (found.notes, found.size, found.rows, found.rows_size) == ({1: note}, 10, [], 0)
    assert (found.changed, sealed(found, 9000)) == (set(), [])


def test_row_count_continues_from_last_owner() -> None:  # [4]
    found = OwnLane(A1, None, S, now=0)
    found.own(Owned("p", A1, Mark(7, -50, rows=40), 1))
    fed(found, rows(7, 9), rows(9, 12))
    chunk = only(Write, sealed(found)).value
    assert isinstance(chunk, Chunk)
    assert chunk.payload == (
        Segment(partition="p", position=7, ordinal=40, rows=2, payload="rows 7-9"),
        Segment(partition="p", position=9, ordinal=42, rows=3, payload="rows 9-12"),
    )


def test_age_of_chunk_counts_from_first_row() -> None:
    found = fed(lane(), rows(0, 1), now=100)
    fed(found, rows(1, 2), now=300)
    assert sealed(found, 349) == []
    assert sealed(found, 350) != []
    fed(found, rows(2, 3), now=900)
    assert sealed(found, 1149) == []
    assert sealed(found, 1150) != []


def test_large_enough_chunk_is_sealed_at_once() -> None:  # [12]
    found = fed(lane(settings=S._replace(max_chunk_bytes=10)), rows(size=9))
    assert sealed(found, 0) == []
    fed(found, rows(1, 2, size=1))
    assert sealed(found, 0) != []


def test_end_of_partition_or_lane_seals_at_once() -> None:
    assert sealed(fed(lane(), rows(ended=True)), 0) != []
    found = fed(lane(), rows())
    found.ending = True
    assert sealed(found, 0) != []


def test_chunk_carries_marks_of_changed_partitions_only() -> None:
    found = lane(q=4, r=0)
    fed(found, rows(4, 5, partition="q"), rows(0, 1))
    sealed(found)
    assert [partition for partition, _ in found.notes[1].marks] == ["p", "q"]


# --- acknowledging ------------------------------------------------------------------------


def test_source_is_acknowledged_once_chunk_is_written_without_buddy() -> None:  # [1]
    effects = sealed(fed(lane(), rows(0, 2)))
    assert [type(e) for e in effects] == [Write, Acknowledge]
    assert of(Acknowledge, effects) == [Acknowledge("p", 2)]


def test_source_is_acknowledged_only_once_both_volumes_have_chunk() -> None:  # [1] [8]
    found = fed(lane("b"), rows(0, 2))
    assert of(Acknowledge, sealed(found)) == []
    assert found.acknowledge() == []
    assert ack(found, 1)
    assert found.acknowledge() == [Acknowledge("p", 2)]
    assert found.acknowledge() == []


def test_chunks_are_acknowledged_in_order() -> None:  # [1]
    found = lane("b")
    for number in range(3):
        sealed(fed(found, rows(number, number + 1)), S.interval * (number + 1))
    ack(found, 2)
    assert found.acknowledge() == [Acknowledge("p", 1), Acknowledge("p", 2)]
    ack(found, 3)
    assert found.acknowledge() == [Acknowledge("p", 3)]


# --- the second copy ------------------------------------------------------------------------


LATE = 100 * S.interval


def copied(found: OwnLane, now: int) -> list[int]:
    """The chunks that are sent now."""
    numbers = [message.number for _, message in sent(CopyChunk, found.copy_again(V, now))]
    return [number for number in numbers if number]


def filled(count: int, buddy: str | None = "b") -> OwnLane:
    found = lane(buddy)
    for number in range(count):
        sealed(fed(found, rows(number, number + 1)), S.interval * (number + 1))
    return found


def test_missing_chunks_are_resent_to_buddy_in_small_batches() -> None:  # [11] [12]
    found = filled(COPIES_AT_ONCE + 2)
    assert copied(found, LATE) == list(range(1, COPIES_AT_ONCE + 1))
    ack(found, COPIES_AT_ONCE)
    assert copied(found, LATE + 1) == [COPIES_AT_ONCE + 1, COPIES_AT_ONCE + 2]


def test_chunk_in_flight_is_not_resent_too_soon() -> None:  # [12]
    found = lane("b")
    assert copied(found, 400) == []
    sealed(fed(found, rows(0, 1)), S.interval)
    again = 400 + S.copy_silence // 2
    assert copied(found, again - 1) == []
    assert copied(found, again) == [1]
    assert copied(found, again + 1) == []


def test_each_acknowledgement_continues_fill() -> None:  # (c)
    found = filled(3 * COPIES_AT_ONCE, None)
    found.log.fill("b", LATE)
    assert copied(found, LATE) == list(range(1, COPIES_AT_ONCE + 1))
    sealed(fed(found, rows(99, 100)), LATE)
    ack(found, 2)
    assert copied(found, LATE) == [COPIES_AT_ONCE + 1, COPIES_AT_ONCE + 2]


def test_chunks_sent_to_last_buddy_are_sent_again_to_next() -> None:  # (c)
    log, way = OwnedLog(0, 0, 0, 0), OnItsWay(0)
    log.begin_with("b", 0)
    assert way.first_to_send(log, patience=100, now=0) == 1
    for number in (1, 2, 3):
        way.note(number)
    assert way.first_to_send(log, patience=100, now=1) == 4
    log.fence = (0, 1)
    assert way.first_to_send(log, patience=100, now=2) == 1


def test_up_to_date_buddy_receives_heartbeat() -> None:
    found = filled(1)
    ack(found, 1)
    assert only(CopyChunk, found.copy_again(V, LATE)) == CopyChunk(A1, (0, 0), V, 0, 0)
    assert filled(1, None).copy_again(V, LATE) == []


def test_new_buddy_is_filled_from_kept_chunks() -> None:  # (c)
    found = filled(3, None)
    found.trim(1)
    found.log.fill("c", 0)
    copies = sent(CopyChunk, found.copy_again(V, LATE))
    assert [(to, m.number, m.base, m.fence) for to, m in copies] == [
        ("c", 2, 1, (0, 1)),
        ("c", 3, 1, (0, 1)),
    ]


# --- forgetting -----------------------------------------------------------------------------


def test_recorded_trim_point_frees_chunks() -> None:  # [5] [12]
    found = filled(3)
    effects = found.trim(2)
    assert effects == [
        Write(("lane", A1), 2),
        Erase(("chunk", A1, 1)),
        Erase(("chunk", A1, 2)),
    ]
    assert (found.log.base, found.log.acked, found.size, list(found.notes)) == (2, 2, 10, [3])
    assert found.trim(2) == []
    assert found.trim(1) == []


def test_trimming_keeps_acknowledged_chunk() -> None:
    found = filled(3)
    ack(found, 3)
    found.trim(1)
    assert found.log.acked == 3


# --- telling --------------------------------------------------------------------------------


def test_report_lists_published_chunks_not_covered_by_header() -> None:  # [8]
    found = filled(3)
    ack(found, 2)
    report = found.report(1, 0)
    assert (report.lane, report.through, [n for n, _ in report.notes]) == (A1, 2, [2])
    assert (report.live, report.ask, report.over_bound) == (True, None, False)
    assert report.notes[0][1] == found.notes[2]


def test_report_lists_bounded_number_of_notes() -> None:  # [12]
    found = filled(NOTES_AT_ONCE + 3, None)
    assert [n for n, _ in found.report(0, 0).notes] == list(range(1, NOTES_AT_ONCE + 1))
    assert [n for n, _ in found.report(2, 0).notes] == list(range(3, NOTES_AT_ONCE + 3))


def test_report_omits_notes_of_trimmed_chunks() -> None:
    found = filled(3, None)
    found.trim(2)
    assert [n for n, _ in found.report(0, 0).notes] == [3]


def test_report_carries_wanted_buddy_change() -> None:
    found = filled(1)
    found.log.drop_follower()
    assert found.report(0, 0).ask == (2, None)


def test_lane_is_over_its_bound_once_full_for_two_intervals() -> None:  # [12]
    found = fed(lane(settings=S._replace(max_lane_bytes=10)), rows(size=10))
    assert not found.report(0, 100).over_bound
    assert not found.report(0, 100 + 2 * S.interval - 1).over_bound
    assert found.report(0, 100 + 2 * S.interval).over_bound
    sealed(found)
    found.trim(1)
    assert not found.report(0, 2000).over_bound
    fed(found, rows(1, 2, size=10), now=2000)
    assert not found.report(0, 2100).over_bound
    assert found.report(0, 2100 + 2 * S.interval).over_bound


def test_lane_is_stuck_once_not_trimmed_for_long() -> None:  # [12]
    found = filled(3, None)
    found.settings = S._replace(max_lane_bytes=10)
    assert not found.report(0, 100).stuck
    found.trim(1)
    assert not found.report(0, 100 + S.max_full).stuck
    assert not found.report(0, 99 + 2 * S.max_full).stuck
    assert found.report(0, 100 + 2 * S.max_full).stuck


def ends(found: OwnLane) -> tuple[bool, bool]:
    return found.ended, found.report(0, 0).live


def test_lane_has_ended_once_all_rows_are_sealed_and_published() -> None:  # [1]
    found = fed(lane("b"), rows())
    assert ends(found) == (False, True)
    found.ending = True
    assert ends(found) == (False, True)
    sealed(found)
    assert ends(found) == (False, True)
    ack(found, 1)
    assert ends(found) == (True, False)


# --- what was put aside ---------------------------------------------------------------------


def test_rejected_count_continues_with_next_owner() -> None:
    found = OwnLane(A1, None, S, now=0)
    found.own(Owned("p", A1, Mark(0, 0, rejected=3), 1))
    fed(found, rows(0, 1, rejected=1), rows(1, 2), rows(2, 3, rejected=2))
    chunk = only(Write, sealed(found)).value
    assert isinstance(chunk, Chunk)
    assert dict(chunk.note.marks)["p"].rejected == 6


def test_rejects_without_position_change_are_in_next_chunk() -> None:
    found = fed(lane(), rows(0, 0))
    assert sealed(found) == []
    fed(found, rows(0, 0, rejected=1))
    chunk = only(Write, sealed(found)).value
    assert chunk == Chunk(Note(0, (("p", Mark(0, -50, rejected=1)),)), ())
    assert found.readings["p"].waiting_since == 0

"""Rule (i): the header log anew, from what holders and merges know."""

import pytest
from tests.protocol.builders import A1, B1, G1, G2, S, digest, generation, header, intent

from tandem_core.contract.intent import Generation, Intent
from tandem_core.model.states import MemberKind, SeatState
from tandem_runtime.protocol.election.rebuild import Rebuild
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import Dealing, Header, Lane, Seat, Slot, Span

TERM = 7
PATIENCE = S.patience
READY = 2 * S.silence


def replica(
    committed: int,
    *headers: Header,
    pair: str = "x",
    verified: bool = True,
    generations: tuple[Generation, ...] = (G1,),
    term: int = TERM,
    history: str = "h",
) -> Present:
    return Present(
        term=term,
        kind=MemberKind.REPLICA,
        pair=pair,
        committed=committed,
        verified=verified,
        slot=-1,
        delivered=0,
        digest=digest(committed, history),
        headers=headers,
        generations=generations,
    )


def merge(delivered: int = 0, *headers: Header, slot: int = 0, history: str = "") -> Present:
    return Present(
        term=TERM,
        kind=MemberKind.MERGE,
        pair="",
        committed=0,
        verified=False,
        slot=slot,
        delivered=delivered,
        digest=digest(delivered, history) if history else "",
        headers=headers,
        generations=(),
    )


def rebuild(**present: Present) -> Rebuild:
    found = Rebuild(TERM, S, now=0)
    for volume, answer in present.items():
        found.answered(volume, answer)
    return found


def rebuilt(found: Rebuild, known: Intent | None = None) -> tuple[LogState, dict[str, str]]:
    log_state, lost = found.rebuilt(known or intent(), frozenset())
    assert len(dict(lost)) == len(lost)
    return log_state, dict(lost)


def seat(log_state: LogState, number: int, pair: str = "x") -> Seat | None:
    return log_state.seats[pair][number]


# --- waiting --------------------------------------------------------------------------------


def test_answers_to_other_musters_are_ignored() -> None:  # (i)
    assert rebuild(x0=replica(3, term=TERM - 1)).present == {}
    assert set(rebuild(x0=replica(3)).present) == {"x0"}


def test_rebuild_completes_when_every_pair_and_slot_has_answered() -> None:  # (i)
    found = rebuild(x0=replica(1, header(1)), m=merge())
    assert not found.complete(intent(), READY - 1)
    assert found.complete(intent(), READY)
    assert not found.complete(None, PATIENCE)


def test_rebuild_waits_for_silent_pair_or_slot() -> None:  # (i)
    both = generation(1, "x", "v")
    found = rebuild(x0=replica(1, header(1), generations=(both,)), m=merge())
    assert not found.complete(intent(both), READY)
    found.answered("v0", replica(1, pair="v", generations=(both,)))
    assert found.complete(intent(both), READY)
    assert not found.complete(intent(both, slots=2), READY)
    found.answered("m1", merge(slot=1))
    assert found.complete(intent(both, slots=2), READY)


def test_joiner_without_state_does_not_answer_for_its_pair() -> None:  # (i)
    found = rebuild(x0=replica(0, verified=False), m=merge(0, header(1)))
    assert not found.complete(intent(), PATIENCE - 1)
    assert found.complete(intent(), PATIENCE)


def test_rebuild_waits_for_no_pair_before_first_header() -> None:  # (i)
    assert rebuild(m=merge()).complete(intent(), READY)
    assert not rebuild().complete(intent(), READY)


# --- the last header --------------------------------------------------------------------------


def test_highest_known_header_becomes_last() -> None:  # (i) [6]
    found = rebuild(x0=replica(1, header(1), header(2)), m=merge(0, header(2), header(3)))
    log_state, lost = rebuilt(found)
    assert (log_state.epoch, log_state.generation, log_state.first_of_generation) == (3, 1, 3)
    assert lost == {}


def test_rebuild_without_known_headers_yields_empty_log() -> None:  # (i)
    log_state, lost = rebuilt(rebuild(x0=replica(0), m=merge(0)))
    assert (log_state.epoch, log_state.seats, lost) == (0, {}, {})


def test_sinks_ahead_are_reported_as_data_loss() -> None:  # (i) DataLost
    _, lost = rebuilt(rebuild(m=merge(2), m1=merge(3, slot=1)))
    assert set(lost) == {"sinks"}
    _, lost = rebuilt(rebuild(x0=replica(1, header(1)), m=merge(2)))
    assert set(lost) == {"sinks"}
    _, lost = rebuilt(rebuild(x0=replica(1, header(1)), m=merge(1)))
    assert lost == {}


def test_sinks_ahead_of_empty_log_are_reported_once() -> None:  # (i) DataLost
    found = rebuild(m=merge(2), m1=merge(3, slot=1))
    assert [subject for subject, _ in found.rebuilt(intent(slots=2), set())[1]] == ["sinks"]


def test_marks_and_watermarks_come_from_last_header() -> None:  # (i) [9]
    last = header(2, watermarks={"s": 40})
    log_state, _ = rebuilt(rebuild(x0=replica(1, header(1), last), m=merge()))
    assert log_state.watermarks == {"s": 40}


# --- seats ------------------------------------------------------------------------------------


def test_full_members_are_seated_with_most_advanced_first() -> None:  # (i)
    found = rebuild(
        x0=replica(1, header(1)),
        x1=replica(3, header(1), header(2), header(3)),
        x2=replica(2),
        x3=replica(9, verified=False),
        m=merge(),
    )
    log_state, lost = rebuilt(found)
    assert seat(log_state, 0) == Seat("x1", 3, SeatState.VERIFIED)
    assert seat(log_state, 1) == Seat("x2", 2, SeatState.VERIFIED)
    assert lost == {}


def test_silent_replica_loses_its_seat() -> None:  # (i)
    log_state, _ = rebuilt(rebuild(x0=replica(1, header(1)), m=merge()))
    assert log_state.seats["x"] == [Seat("x0", 1, SeatState.VERIFIED), None]


def test_replica_that_cannot_continue_known_headers_loses_its_seat() -> None:  # (i) DataLost
    found = rebuild(x0=replica(3, header(3)), x1=replica(1), m=merge(3))
    log_state, _ = rebuilt(found)
    assert log_state.seats["x"] == [Seat("x0", 3, SeatState.VERIFIED), None]
    found = rebuild(x0=replica(2), x1=replica(1), m=merge(3, header(3)))
    log_state, lost = rebuilt(found)
    assert log_state.seats["x"] == [Seat("x0", 2, SeatState.VERIFIED), None]
    found = rebuild(x1=replica(1), m=merge(3, header(3)))
    log_state, lost = rebuilt(found)
    assert (log_state.seats["x"], set(lost)) == ([None, None], {"x"})


# --- histories: the log was rebuilt before ------------------------------------------------------


def cut_anew(*epochs: int, term: int = 2) -> tuple[Header, ...]:
    """Headers of the history that goes on with epoch 1, after the log was rebuilt there."""
    found = (header(epoch, history="b", term=term) for epoch in epochs)
    return tuple(h.replace(previous=digest(1)) if h.epoch == 2 else h for h in found)


OLD = (header(1), header(2), header(3))


def test_newest_history_wins_over_highest_epoch() -> None:  # (i) rebuild-by-number
    found = rebuild(
        x0=replica(2, header(1), *cut_anew(2), history="b"), m=merge(0, *OLD), m1=merge(0)
    )
    log_state, lost = rebuilt(found)
    assert (log_state.epoch, log_state.digest, lost) == (2, digest(2, "b"), {})
    assert log_state.headers == {1: header(1), 2: cut_anew(2)[0]}


def test_headers_of_two_histories_are_never_mixed() -> None:  # (i) rebuild-by-number
    late = merge(0, *OLD)
    for answers in (
        {"x0": replica(3, *cut_anew(3), history="b"), "m": late},
        {"m": late, "x0": replica(3, *cut_anew(3), history="b")},
    ):
        log_state, _ = rebuilt(rebuild(**answers))
        assert log_state.headers == {3: cut_anew(3)[0]}
        assert (log_state.trim, log_state.trimmed_digest) == (2, digest(2, "b"))


def test_replica_of_another_history_loses_its_seat() -> None:  # (i) rebuild-by-number
    found = rebuild(
        x0=replica(2, *OLD[:2]), x1=replica(2, header(1), *cut_anew(2), history="b"), m=merge(0)
    )
    log_state, lost = rebuilt(found)
    assert log_state.seats["x"] == [Seat("x1", 2, SeatState.VERIFIED), None]
    assert lost == {}


def test_replica_with_common_prefix_continues() -> None:  # (i)
    found = rebuild(x0=replica(1, *OLD), m=merge(0, header(1), *cut_anew(2, 3)))
    log_state, lost = rebuilt(found)
    assert (log_state.epoch, log_state.digest, lost) == (3, digest(3, "b"), {})
    assert log_state.seats["x"] == [Seat("x0", 1, SeatState.VERIFIED), None]


def test_predecessor_of_first_known_header_suffices_for_seat() -> None:  # (i)
    answers = {"m": merge(0, *cut_anew(3)), "x1": replica(2)}
    log_state, lost = rebuilt(rebuild(**answers, x0=replica(2, history="b")))
    assert log_state.seats["x"] == [Seat("x0", 2, SeatState.VERIFIED), None]
    assert lost == {}


def test_replica_without_commits_is_seated_only_if_log_begins_with_epoch_1() -> None:  # (i)
    log_state, _ = rebuilt(rebuild(x0=replica(0), m=merge(0, header(1), header(2))))
    assert log_state.seats["x"] == [Seat("x0", 0, SeatState.VERIFIED), None]
    log_state, lost = rebuilt(rebuild(x0=replica(0), m=merge(0, header(2))))
    assert (log_state.seats["x"], set(lost)) == ([None, None], {"x"})


def test_replica_committed_beyond_last_header_loses_its_seat() -> None:  # (i)
    found = rebuild(x0=replica(3, *OLD), m=merge(0, header(1), *cut_anew(2)))
    log_state, lost = rebuilt(found)
    assert (log_state.seats["x"], set(lost)) == ([None, None], {"x"})


def test_rebuild_waits_for_full_member_of_same_history() -> None:  # (i)
    found = rebuild(x0=replica(2, *OLD[:2]), m=merge(0, header(1), *cut_anew(2)))
    assert not found.complete(intent(), PATIENCE - 1)
    found.answered("x1", replica(2, history="b"))
    assert found.complete(intent(), READY)


def test_sink_epochs_of_another_history_are_reported_as_data_loss() -> None:  # (i) DataLost
    held = replica(2, header(1), *cut_anew(2), history="b")
    _, lost = rebuilt(rebuild(x0=held, m=merge(2, history="h")))
    assert set(lost) == {"sinks"}
    for delivered, history in ((2, "b"), (1, "h"), (2, "")):
        _, lost = rebuilt(rebuild(x0=held, m=merge(delivered, history=history)))
        assert lost == {}


def test_sink_epochs_before_known_headers_prove_nothing() -> None:  # (i)
    _, lost = rebuilt(rebuild(x0=replica(3, *cut_anew(3), history="b"), m=merge(1, history="h")))
    assert lost == {}


# --- trim point and headers ---------------------------------------------------------------------


def test_headers_needed_by_seat_or_sink_are_kept() -> None:  # (i) [5]
    known = tuple(header(epoch) for epoch in (1, 2, 3, 4))
    log_state, _ = rebuilt(rebuild(x0=replica(4, *known), x1=replica(3), m=merge(2)))
    assert (log_state.trim, sorted(log_state.headers), log_state.delivered) == (2, [3, 4], 2)
    log_state, _ = rebuilt(rebuild(x0=replica(4, *known), x1=replica(1), m=merge(2)))
    assert (log_state.trim, sorted(log_state.headers)) == (1, [2, 3, 4])


def test_unknown_headers_count_as_trimmed() -> None:  # (i)
    log_state, _ = rebuilt(rebuild(x0=replica(4, header(4)), m=merge(1)))
    assert (log_state.trim, sorted(log_state.headers)) == (3, [4])


def test_nothing_counts_as_delivered_without_merge() -> None:  # (i)
    log_state, _ = rebuilt(rebuild(x0=replica(1, header(1))))
    assert (log_state.delivered, log_state.trim) == (0, 0)


def test_generations_named_by_kept_headers_are_restored() -> None:  # (i) [7]
    known = (header(1), header(2, generation=2))
    found = rebuild(
        y0=replica(1, *known, pair="y", generations=(G1, G2)),
        z0=replica(2, pair="z"),
        m=merge(0),
    )
    log_state, _ = rebuilt(found)
    assert (set(log_state.generations), log_state.generation) == ({1, 2}, 2)
    assert set(log_state.seats) == {"x", "y", "z"}


def test_pairs_of_undelivered_epochs_keep_their_seats_and_results() -> None:  # (i) [8]
    known = (header(1), header(2, generation=2))
    found = rebuild(
        x0=replica(1, *known, generations=(G1, G2)),
        y0=replica(2, pair="y"),
        z0=replica(2, pair="z"),
        m=merge(0),
    )
    assert found.complete(intent(G1, G2, target=2), READY)
    log_state, lost = rebuilt(found)
    assert (seat(log_state, 0), lost) == (Seat("x0", 1, SeatState.VERIFIED), {})
    waits = rebuild(y0=replica(2, *known, pair="y", generations=(G1, G2)), m=merge(0))
    waits.answered("z0", replica(2, pair="z"))
    assert not waits.complete(intent(G1, G2, target=2), READY)


def test_muted_parents_keep_their_seats_and_a_lost_new_pair_is_built_again() -> None:  # (i) [8]
    known = (header(2, generation=2), header(3, generation=2))
    found = rebuild(
        x0=replica(3, *known, generations=(G1, G2)), y0=replica(3, pair="y"), m=merge(2)
    )
    log_state, lost = rebuilt(found, intent(G1, G2, target=2))
    assert (seat(log_state, 0), lost) == (Seat("x0", 3, SeatState.VERIFIED), {})
    _, alone = rebuilt(rebuild(y0=replica(3, *known, pair="y", generations=(G2,)), m=merge(2)))
    assert set(alone) == {"z"}


def test_missing_generation_is_taken_from_intent() -> None:  # (i)
    found = rebuild(y0=replica(1, header(1, generation=2), pair="y", generations=()), m=merge())
    log_state, _ = rebuilt(found, intent(G2, target=2))
    assert log_state.generations == {2: G2}


# --- lanes --------------------------------------------------------------------------------------


def with_rows(committed: int, delivered: int = 0) -> Rebuild:
    known = (header(1, Span(A1, 1, 2)), header(2, Span(A1, 3, 3), Span(B1, 1, 4)))
    found = rebuild(x0=replica(committed, *known), m=merge(delivered))
    found.copies[B1] = {"b": 4, "c": 9}
    return found


def test_rebuilt_lanes_end_at_last_covered_chunk() -> None:  # (i)
    found = with_rows(0)
    found.copies[A1] = {"a": 5, "b": 3, "c": 2}
    log_state, lost = rebuilt(found)
    assert log_state.lanes == {
        A1: Lane("b", state=LaneState.CLOSED, reach=3, last=3, trimmed=0),
        B1: Lane("c", state=LaneState.CLOSED, reach=4, last=4, trimmed=0),
    }
    assert lost == {}


def test_trimmed_chunks_of_lane_stay_trimmed() -> None:  # (i) [5]
    log_state, _ = rebuilt(with_rows(1, delivered=1))
    assert log_state.trim == 1
    assert (log_state.lanes[A1].trimmed, log_state.lanes[B1].trimmed) == (2, 0)


@pytest.mark.parametrize(("committed", "subjects"), [(1, {"lane a/1"}), (2, set())])
def test_needed_chunks_without_copy_are_reported_lost(committed: int, subjects: set[str]) -> None:
    """(i) DataLost"""
    found = with_rows(committed)
    found.copies[A1] = {"a": 2}
    log_state, lost = rebuilt(found)
    assert set(lost) == subjects
    assert log_state.lanes[A1].buddy is None


def test_lane_of_past_epochs_is_not_needed() -> None:  # (i)
    found = rebuild(x0=replica(1, header(1, Span(A1, 1, 1)), header(2, Span(B1, 1, 1))), m=merge())
    found.copies[B1] = {"b": 1}
    _, lost = rebuilt(found)
    assert lost == {}


def test_owner_copy_alone_suffices() -> None:  # (i)
    found = with_rows(0)
    found.copies[A1] = {"a": 3}
    log_state, lost = rebuilt(found)
    assert (log_state.lanes[A1].buddy, lost) == (None, {})


def test_fastest_replica_of_slowest_pair_decides_which_chunks_are_needed() -> None:  # (i)
    both = generation(1, "x", "v")
    known = (header(1, Span(A1, 1, 1)),)
    found = rebuild(
        x0=replica(1, *known, generations=(both,)),
        x1=replica(0, generations=(both,)),
        v0=replica(1, pair="v", generations=(both,)),
        m=merge(),
    )
    _, lost = rebuilt(found, intent(both))
    assert lost == {}
    found.answered("v0", replica(0, pair="v", generations=(both,)))
    _, lost = rebuilt(found, intent(both))
    assert set(lost) == {"lane a/1"}


# --- merge slots --------------------------------------------------------------------------------

DEALING = Dealing(number=3, slots=((0, ("x",)), (2, ())))
OPEN = (Slot(number=0, first=1), Slot(number=2, first=2))


def told(answer: Present, *slots: Slot, index: int = 1, next_slot: int = 4) -> Present:
    """A merge that has heard of slots."""
    return answer.replace(
        version=(TERM - 1, index), slots=slots, next_slot=next_slot, dealings=(DEALING,)
    )


def test_slots_come_from_newest_view() -> None:  # (i)
    ended = (OPEN[0], Slot(number=2, first=2).ended_at(3))
    m, n = told(merge(3), *ended, index=9), told(merge(2, slot=2), *OPEN, next_slot=5)
    found = rebuild(x0=replica(3, header(3)), m=m, n=n)
    assert not rebuild(x0=replica(3, header(3)), m=m).complete(intent(), READY)
    assert found.complete(intent(), READY)
    log_state, lost = rebuilt(found)
    assert lost == {}
    assert tuple(log_state.slots.values()) == ended
    assert (log_state.next_slot, log_state.delivered) == (5, 2)


def test_ended_slot_does_not_hold_back_delivery_after_its_last_epoch() -> None:  # (i)
    ended = (OPEN[0], Slot(number=2, first=2).ended_at(2))
    m, n = told(merge(3), *ended), told(merge(2, slot=2), *ended)
    log_state, _ = rebuilt(rebuild(x0=replica(3, header(3)), m=m, n=n))
    assert log_state.delivered == 3


def test_slot_changes_after_last_header_are_discarded() -> None:  # (i)
    slots = (*OPEN, Slot(number=3, first=5))
    late = told(merge(3), *slots)
    log_state, _ = rebuilt(rebuild(x0=replica(3, header(3)), m=late))
    assert set(log_state.slots) == {0, 2}
    assert log_state.next_slot == 4
    ended = told(merge(3), OPEN[0], Slot(number=2, first=2).ended_at(9))
    log_state, _ = rebuilt(rebuild(x0=replica(3, header(3)), m=ended))
    assert log_state.slots[2].last == 3


def test_dealings_come_from_merges_and_missing_ones_are_reported() -> None:  # (i)
    kept = header(3, dealing=3)
    log_state, lost = rebuilt(rebuild(x0=replica(2, kept), m=told(merge(2), *OPEN)))
    assert (log_state.dealings, lost) == ({3: DEALING}, {})
    assert log_state.dealing == 3
    _, lost = rebuilt(rebuild(x0=replica(2, header(3, dealing=4)), m=told(merge(2), *OPEN)))
    assert set(lost) == {"dealing 4"}


def test_newest_view_wins_among_dealings_of_same_number() -> None:  # (i)
    newer = told(merge(2), *OPEN, index=9)
    other = Dealing(number=3, slots=((0, ()), (2, ("x",))))
    late = told(merge(2, slot=2), *OPEN, index=4).replace(dealings=(other,))
    kept = replica(2, header(3, dealing=3))
    for found in (rebuild(x0=kept, m=newer, n=late), rebuild(n=late, m=newer, x0=kept)):
        assert rebuilt(found)[0].dealings == {3: DEALING}


def test_newest_dealing_is_kept_even_if_no_header_names_it() -> None:  # (i)
    later = DEALING.replace(number=4)
    both = told(merge(2), *OPEN).replace(dealings=(DEALING.replace(number=2), DEALING, later))
    log_state, _ = rebuilt(rebuild(x0=replica(2, header(3, dealing=3)), m=both))
    assert log_state.dealings == {3: DEALING, 4: later}


def test_slot_count_comes_from_intent_if_merges_know_none() -> None:  # (i)
    log_state, lost = rebuilt(rebuild(x0=replica(3, header(3)), m=merge(3)), intent(slots=2))
    assert lost == {}
    assert set(log_state.slots) == {0, 1}
    assert log_state.next_slot == 2


def test_rebuilt_log_keeps_newest_reported_format() -> None:
    older, newer = replica(1, header(1)), merge(1, header(1)).replace(format=3)
    log_state, _ = rebuild(x0=older, m=newer).rebuilt(intent(), set())
    assert log_state.format == 3
    log_state, _ = rebuild(m=merge().replace(format=2)).rebuilt(intent(), set())
    assert log_state.format == 2


def test_sinks_ahead_are_reported_by_furthest_sink() -> None:
    ahead = merge(1, header(1)).replace(furthest=2)
    _, lost = rebuild(x0=replica(1, header(1)), m=ahead).rebuilt(intent(), set())
    assert ("sinks", "ahead of header 1") in lost
    _, lost = rebuild(m=merge().replace(furthest=1)).rebuilt(intent(), set())
    assert lost == [("sinks", "ahead of every header")]

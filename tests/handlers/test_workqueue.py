import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem.control.types import Key
from tandem.handlers.workqueue import FIRST_DELAY, GAP, MOST_DELAY, WorkQueue

A, B = Key("shop", "a"), Key("shop", "b")


def test_workqueue_is_fair_and_deduplicates() -> None:
    agenda = WorkQueue()
    agenda.ask(B, 1.0)
    agenda.ask(A, 2.0)
    assert agenda.take(3.0) == (B, True)
    assert agenda.take(3.0) == (A, True)
    assert agenda.take(3.0) is None
    assert agenda.wait(3.0) == math.inf


def test_repeated_requests_coalesce_into_one_turn() -> None:
    agenda = WorkQueue()
    for now in (1.0, 1.1, 1.2):
        agenda.ask(A, now)
    assert agenda.take(1.2) == (A, True)
    agenda.ask(A, 1.3)
    agenda.ask(A, 1.3)
    assert agenda.take(5.0) is None
    agenda.done(A, 1.4, after=60.0)
    assert agenda.wait(1.4) == pytest.approx(GAP)
    assert agenda.take(1.4) is None
    assert agenda.take(1.4 + GAP) == (A, True)
    agenda.done(A, 2.0, after=60.0)
    assert agenda.take(61.9) is None
    assert agenda.take(62.0) == (A, False)


def test_finished_key_is_forgotten_unless_requested_meanwhile() -> None:
    agenda = WorkQueue()
    agenda.ask(A, 0.0)
    agenda.take(0.0)
    agenda.ask(A, 0.1)
    agenda.done(A, 0.2, after=None)
    assert agenda.take(0.2 + GAP) == (A, True)
    agenda.done(A, 1.0, after=None)
    assert len(agenda) == 0


def test_failure_back_off_grows_to_maximum_and_resets() -> None:
    agenda, now, delays = WorkQueue(), 0.0, []
    agenda.ask(A, now)
    for _ in range(8):
        assert agenda.take(now) == (A, True)
        delays.append(agenda.failed(A, now))
        # Whatever is told meanwhile does not make it sooner.
        agenda.ask(A, now)
        assert agenda.take(now + delays[-1] - 0.01) is None
        now += delays[-1]
    assert delays[:3] == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]
    assert delays[-1] == MOST_DELAY
    agenda.take(now)
    agenda.done(A, now, after=1.0)
    agenda.take(now + 1.0)
    assert agenda.failed(A, now + 1.0) == FIRST_DELAY


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "take", "done", "gone", "fail"]),
        st.sampled_from([A, B]),
        st.floats(0.0, 2.0),
    ),
    max_size=60,
)


@thorough(200)
@given(steps)
def test_no_request_is_lost_and_no_key_is_taken_twice(
    lives: list[tuple[str, Key, float]],
) -> None:
    agenda, now = WorkQueue(), 0.0
    busy: set[Key] = set()
    untold: set[Key] = set()
    for what, key, seconds in lives:
        now += seconds
        if what == "ask":
            agenda.ask(key, now)
            untold.add(key)
        elif what == "take":
            turn = agenda.take(now)
            if turn is not None:
                assert turn.key not in busy
                assert turn.news or turn.key not in untold
                busy.add(turn.key)
                untold.discard(turn.key)
        elif key in busy:
            busy.remove(key)
            if what == "fail":
                agenda.failed(key, now)
            else:
                agenda.done(key, now, None if what == "gone" else 30.0)
    for key in busy:
        agenda.done(key, now, None)
    later = now + MOST_DELAY
    while (turn := agenda.take(later)) is not None:
        untold.discard(turn.key)
    assert not untold

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.cluster import Cluster
from tests.repeatable import thorough

from tandem.handlers.election import DEADLINE, DURATION, Candidate, Claim, ElectionStep, step
from tandem.handlers.lease import Leadership
from tandem.kube.kinds import LEASE, Object, ObjectKind
from tandem.kube.port import Unreachable

MINE, THEIRS = Claim("me", "1"), Claim("them", "1")


@pytest.mark.parametrize(
    ("standing", "now", "expected"),
    [
        (Candidate("me"), 0.0, ElectionStep.TAKE),
        (Candidate("me", Claim("", "1"), 0.0), 1.0, ElectionStep.TAKE),
        (Candidate("me", MINE, 0.0), 1.0, ElectionStep.TAKE),
        (Candidate("me", THEIRS, 0.0), DURATION - 0.1, ElectionStep.WAIT),
        (Candidate("me", THEIRS, 0.0), DURATION, ElectionStep.TAKE),
        (Candidate("me", MINE, 0.0, renewed=0.0), DEADLINE - 0.1, ElectionStep.TAKE),
        (Candidate("me", MINE, 0.0, renewed=0.0), DEADLINE, ElectionStep.LEAVE),
        (Candidate("me", THEIRS, 5.0, renewed=5.0), 6.0, ElectionStep.LEAVE),
        (Candidate("me", None, 5.0, renewed=5.0), 6.0, ElectionStep.TAKE),
    ],
)
def test_election_step_follows_lease_state(
    standing: Candidate, now: float, expected: ElectionStep
) -> None:
    assert step(standing, now) is expected


def test_unchanged_claim_is_not_a_heartbeat() -> None:
    waiting = Candidate("me").saw(THEIRS, 1.0).saw(THEIRS, 9.0)
    assert waiting.seen == 1.0
    assert waiting.saw(Claim("them", "2"), 9.0).seen == 9.0
    assert not waiting.leads(9.0)


class Line(Cluster):
    """A way to the server that may be cut."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.cut = False

    def get(self, kind: ObjectKind, namespace: str | None, name: str) -> Object:
        self._check_line()
        return self._cluster.get(kind, namespace, name)

    def create(self, document: Object) -> Object:
        self._check_line()
        return self._cluster.create(document)

    def replace(self, document: Object) -> Object:
        self._check_line()
        return self._cluster.replace(document)

    def _check_line(self) -> None:
        if self.cut:
            raise Unreachable("cut")


class Room:
    """Some operators and one clock."""

    def __init__(self, count: int) -> None:
        self.now = 100.0
        self.pods = -1
        self.cluster = Cluster()
        self.lines = [Line(self.cluster) for _ in range(count)]
        self.operators: dict[int, Leadership] = {}
        for number in range(count):
            self.start(number)

    def start(self, number: int) -> None:
        """A new pod takes the place of an operator, on the same line."""
        self.pods += 1
        name = f"operator-{self.pods}"
        line = self.lines[number]
        self.operators[number] = Leadership(line, "tandem-system", name, lambda: self.now)

    def leading(self) -> list[int]:
        return [number for number, each in self.operators.items() if each.leads()]

    def holder(self) -> str:
        lease = self.cluster.get(LEASE, "tandem-system", "tandem-operator")
        return str(lease["spec"]["holderIdentity"])


def test_standby_takes_expired_lease_and_old_leader_leaves() -> None:
    room = Room(2)
    first, second = room.operators.values()
    assert first.look() is ElectionStep.TAKE
    assert second.look() is ElectionStep.WAIT
    assert room.leading() == [0]
    room.now += DEADLINE
    assert room.leading() == []
    room.now += DURATION - DEADLINE - 0.1
    assert second.look() is ElectionStep.WAIT
    room.now += 0.1
    assert second.look() is ElectionStep.TAKE
    assert room.leading() == [1]
    assert first.look() is ElectionStep.LEAVE
    assert room.holder() == "operator-1"


def test_released_lease_is_taken_at_once() -> None:
    room = Room(2)
    first, second = room.operators.values()
    first.look()
    second.look()
    first.release()
    assert room.holder() == ""
    assert second.look() is ElectionStep.TAKE
    first.release()
    second.stop()
    assert room.holder() == "operator-1"


def test_disconnected_leader_leaves_before_deadline() -> None:
    room = Room(1)
    room.operators[0].look()
    room.lines[0].cut = True
    room.now += DEADLINE - 0.1
    assert room.operators[0].look() is ElectionStep.WAIT
    room.now += 0.1
    assert room.operators[0].look() is ElectionStep.LEAVE


def test_restarted_process_in_same_pod_reacquires_lease_at_once() -> None:
    room = Room(1)
    room.operators[0].look()
    again = Leadership(room.lines[0], "tandem-system", "operator-0", lambda: room.now)
    assert again.acquire()


def test_renewal_thread_reports_lost_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tandem.handlers.lease.EVERY", 0.01)
    room, lost = Room(1), threading.Event()
    assert room.operators[0].acquire()
    room.operators[0].keep(lost.set)
    room.lines[0].cut = True
    room.now += DEADLINE
    assert lost.wait(20)


actions = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(["look", "cut", "mend", "release"]), st.floats(0, 6)
    ),
    max_size=80,
)


@contextmanager
def _never_two(room: Room) -> Iterator[None]:
    yield
    assert len(room.leading()) <= 1


@thorough(200)
@given(actions)
def test_never_two_leaders_at_once(lives: list[tuple[int, str, float]]) -> None:
    room = Room(3)
    for number, what, seconds in lives:
        with _never_two(room):
            room.now += seconds
        operator, line = room.operators[number], room.lines[number]
        with _never_two(room):
            if what == "cut":
                line.cut = True
            elif what == "mend":
                line.cut = False
            elif what == "release":
                operator.release()
                room.start(number)
            elif operator.look() is ElectionStep.LEAVE:
                room.start(number)

"""Schedules reach the states of every machine, so that its moves are under test."""

from collections import Counter
from typing import Any

import pytest

from tandem_core.model.lifecycle import Lifecycle
from tandem_runtime.protocol.states import LIFECYCLES, MergeRole, ReplicaLife
from tandem_simulator.engine.schedule import run_schedule

SCHEDULES = 150

RARE = {
    ReplicaLife.SUPERSEDED,
    ReplicaLife.STOPPING,
    ReplicaLife.FINISHING,
    MergeRole.LEAVING,
}
"""States that so few schedules need not reach; the tests of the replica and of the merge do."""


def test_schedules_reach_every_state(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: Counter[tuple[str, object]] = Counter()
    check, after = Lifecycle.check, Lifecycle.after

    def count_check(self: Lifecycle[Any], before: Any, to: Any, subject: object) -> None:
        check(self, before, to, subject)
        reached[self.machine, to] += 1

    def count_after(self: Lifecycle[Any], cause: str, before: Any, subject: object) -> Any:
        to = after(self, cause, before, subject)
        reached[self.machine, to] += 1
        return to

    monkeypatch.setattr(Lifecycle, "check", count_check)
    monkeypatch.setattr(Lifecycle, "after", count_after)
    for number in range(SCHEDULES):
        assert run_schedule(2, number).violation is None
    states = {(each.machine, move.after) for each in LIFECYCLES for move in each.moves}
    missing = {state for state in states - reached.keys() if state[1] not in {None, *RARE}}
    assert missing == set()


def test_illegal_move_is_reported_as_its_own_violation() -> None:
    found = (run_schedule(3, number, plant="illegal-move").violation for number in range(100))
    violation = next(each for each in found if each is not None)
    assert violation.kind == "illegal-move"

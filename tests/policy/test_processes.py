from typing import Any

import pytest
from tests.policy.builders import (
    BOTH_SEATS,
    NOW,
    ended,
    lead,
    look,
    merge,
    replica,
    seat,
    spare,
    split,
)

from tandem.policy.controller_state import ControllerState, Crashes
from tandem.policy.decide import decide
from tandem.policy.decisions import (
    AssignSpare,
    Complete,
    Decision,
    Halt,
    Kill,
    Promote,
    RecordEvent,
    Replace,
    Restart,
    Start,
    Wait,
)
from tandem.policy.recovery.processes import count_crashes, next_start
from tandem.policy.snapshot import Complaint, Life, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import COMPLETED, RETIRED
from tandem_core.contract.reports import DriverState, LeadReport, ReplicaState
from tandem_core.model.states import SeatState

LIMITS = Timeouts()


def actions(snapshot: Snapshot, memory: ControllerState | None = None) -> list[Decision]:
    """What is to be done about processes."""
    decided = decide(snapshot, memory or ControllerState(), LIMITS).decisions
    return [each for each in decided if not isinstance(each, Promote | RecordEvent | Wait)]


def waits(snapshot: Snapshot, memory: ControllerState | None = None) -> list[str]:
    """Whose time has not come yet."""
    decided = decide(snapshot, memory or ControllerState(), LIMITS).decisions
    return [each.name for each in decided if isinstance(each, Wait)]


def test_healthy_pipeline_is_left_alone() -> None:
    everybody = (split(), merge(), replica(), replica("pair-0-b"), spare())
    assert actions(look(*everybody)) == []
    assert waits(look(*everybody)) == []


def test_exit_later_than_snapshot_time_causes_no_wait() -> None:
    just_now = look(split(**ended(-9, at=NOW + 0.01)), lead=None)
    assert actions(just_now) == []
    assert waits(just_now) == []


def test_missing_processes_are_started_spares_last() -> None:
    absent: dict[str, Any] = {"life": Life.ABSENT, "volume": None, "says": None}
    everybody = (
        split(life=Life.ABSENT, volume=None),
        replica(**absent),
        replica("pair-0-b", **(absent | {"volume": "kept"})),
        spare(**absent),
    )
    started = actions(look(*everybody, lead=None))
    assert [(each.name, each.volume) for each in started if isinstance(each, Start)] == [
        ("split-0", None),
        ("pair-0-a", None),
        ("pair-0-b", "kept"),
    ]
    running = (split(), replica(), replica("pair-0-b"), spare(**absent))
    (decision,) = actions(look(*running))
    assert isinstance(decision, Start)
    assert decision.name == "spare-0"


@pytest.mark.parametrize("code", [1, -9, -11, 0])
def test_crashed_member_restarts_on_its_volume(code: int) -> None:
    gone = ended(code, at=NOW - LIMITS.leaving)
    twins = (replica(**gone), replica("pair-0-b"))
    snapshot = look(split(**gone), merge(**gone), merge("merge-1"), *twins)
    restarted = actions(snapshot)
    assert all(isinstance(each, Restart) for each in restarted)
    assert [(r.name, r.volume) for r in restarted if isinstance(r, Restart)] == [
        ("split-0", "v-split-0"),
        ("merge-0", "v-merge-0"),
        ("pair-0-a", "v-pair-0-a"),
    ]


def test_cleanly_exited_member_is_not_restarted_at_once() -> None:
    just_ended = ended(0, at=NOW - LIMITS.leaving / 2)
    snapshot = look(split(**just_ended), merge(), replica(), replica("pair-0-b"))
    assert actions(snapshot) == []
    assert waits(snapshot) == ["split-0"]


def test_replica_of_retired_pair_is_not_restarted() -> None:
    retired = ended(RETIRED, at=NOW - 2 * LIMITS.leaving)
    snapshot = look(split(), merge(), replica(**retired), replica("pair-0-b", **retired))
    assert actions(snapshot) == []
    assert waits(snapshot) == []


def test_completion_is_reported_by_lead_or_by_exit_code() -> None:
    everybody = (split(), merge(), replica(), replica("pair-0-b", **ended(1)))
    (decision,) = actions(look(*everybody, lead=BOTH_SEATS.replace(completed=True)))
    assert isinstance(decision, Complete)
    one_knew = (split(**ended(COMPLETED)), merge(), replica(**ended(-15)))
    outcome = decide(look(*one_knew, lead=None), ControllerState(), LIMITS)
    assert any(isinstance(each, Complete) for each in outcome.decisions)
    assert outcome.memory.completed
    stopped = (split(**ended(0)), merge(**ended(0)))
    assert not decide(look(*stopped, lead=None), ControllerState(), LIMITS).memory.completed


def test_hung_members_are_killed_and_slow_ones_kept() -> None:
    hung = split(silent_since=NOW - LIMITS.hung)
    slow = merge(silent_since=NOW - LIMITS.hung + 1)
    booting = replica(life=Life.STARTING, started=NOW - LIMITS.boot + 1, says=None)
    stuck = replica("pair-0-b", life=Life.STARTING, started=NOW - LIMITS.boot, says=None)
    killed = actions(look(hung, slow, booting, stuck, lead=None))
    assert [each.name for each in killed if isinstance(each, Kill)] == ["split-0", "pair-0-b"]
    assert len(killed) == 2


def test_member_with_vanished_volume_is_replaced_whatever_its_kind() -> None:
    vanished = ended(1) | {"volume_there": False}
    replaced = actions(look(split(**vanished), replica(**vanished), lead=None))
    assert [each.name for each in replaced if isinstance(each, Replace)] == ["split-0", "pair-0-a"]
    (decision,) = actions(look(split(volume_there=False), lead=None))
    assert isinstance(decision, Kill)


def test_unusable_volume_is_replaced() -> None:
    useless = ended(10)
    for snapshot in (
        look(replica(**useless), replica("pair-0-b")),
        look(replica(**useless), replica("pair-0-b", **ended(1)), lead=lead(seat("pair-0-b"))),
        look(split(**useless), lead=None),
        look(merge(**useless), lead=None),
    ):
        assert isinstance(actions(snapshot)[0], Replace)


def test_last_volume_with_state_is_not_replaced() -> None:
    useless = replica(**ended(10))
    for twin in (
        replica("pair-0-b", **ended(1)),
        replica("pair-0-b", silent_since=NOW - 5),
        replica("pair-0-b", says=ReplicaState(state=DriverState.JOINING)),
        replica("pair-0-b", life=Life.STARTING, says=None),
    ):
        assert isinstance(actions(look(useless, twin))[0], Restart)
    assert isinstance(actions(look(useless, replica("pair-0-b"), lead=None))[0], Restart)


def test_warm_spare_replaces_dead_replica() -> None:
    snapshot = look(replica(**ended(-9)), replica("pair-0-b"), spare())
    (decision,) = actions(snapshot)
    assert isinstance(decision, AssignSpare)
    assert (decision.spare, decision.name, decision.volume) == ("spare-0", "pair-0-a", "v-pair-0-a")


@pytest.mark.parametrize(
    "seats",
    [
        lead(seat("pair-0-a"), seat("pair-0-b", state=SeatState.JOINING)),
        lead(seat("pair-0-a"), seat("pair-0-b", state=SeatState.LAPSED)),
        lead(seat("pair-0-a"), seat("pair-0-b", silent=True)),
        lead(seat("pair-0-a")),
        lead(seat("pair-0-a"), seat("pair-0-b"), vulnerable=("pair-0",)),
        None,
    ],
)
def test_spare_does_not_replace_possible_last_copy(seats: LeadReport | None) -> None:
    snapshot = look(replica(**ended(-9)), replica("pair-0-b"), spare(), lead=seats)
    assert isinstance(actions(snapshot)[0], Restart)


def test_spare_is_assigned_to_one_replica_only() -> None:
    seats = BOTH_SEATS.pairs + lead(seat("pair-1-a"), seat("pair-1-b"), pair="pair-1").pairs
    snapshot = look(
        replica(**ended(-9)),
        replica("pair-0-b"),
        replica("pair-1-a", "pair-1", **ended(-9)),
        replica("pair-1-b", "pair-1"),
        spare(),
        lead=BOTH_SEATS.replace(pairs=seats),
    )
    first, second = actions(snapshot)
    assert isinstance(first, AssignSpare)
    assert isinstance(second, Restart)
    assert second.name == "pair-1-a"


@pytest.mark.parametrize(
    "cold",
    [
        {"says": ReplicaState(state=DriverState.BOOTING)},
        {"silent_since": NOW - 0.5},
        {"life": Life.STARTING, "says": None},
    ],
)
def test_cold_spare_is_not_used(cold: dict[str, Any]) -> None:
    snapshot = look(replica(**ended(-9)), replica("pair-0-b"), spare(**cold))
    assert isinstance(actions(snapshot)[0], Restart)


def test_refusal_halts_pipeline() -> None:
    why = Complaint("QueryFailed", "division by zero", "mend the query")
    refused = ended(3) | {"complaint": why}
    (decision,) = actions(look(split(**refused)))
    assert decision == Halt("split-0", why)
    (decision,) = actions(look(split(**ended(3))))
    assert isinstance(decision, Halt)
    assert "split-0" in decision.named.message
    (decision,) = actions(look(replica(**refused), replica("pair-0-b", **refused)))[:1]
    assert decision == Halt("pair-0-a", why)


def test_refusing_replica_restarts_while_twin_continues() -> None:
    (decision,) = actions(look(replica(**ended(3)), replica("pair-0-b")))
    assert isinstance(decision, Restart)


def test_restart_back_off_grows_to_maximum() -> None:
    delays = [LIMITS.delay_after(count) for count in range(1, 5000)]
    assert delays[:4] == [0, 1, 2, 4]
    assert delays == sorted(delays)
    assert max(delays) == LIMITS.most_delay


def test_crash_is_counted_once_and_forgotten_after_healthy_run() -> None:
    first = look(split(**ended(1), run=1), lead=None)
    counted = count_crashes(first, {}, LIMITS)
    assert counted == count_crashes(first, counted, LIMITS) == {"split-0": Crashes(1, 1)}
    again = count_crashes(look(split(**ended(1), run=2), lead=None), counted, LIMITS)
    assert again == {"split-0": Crashes(2, 2)}
    at_once, later = split(**ended(1, started=NOW), run=2), split(**ended(1, started=0), run=2)
    assert next_start(at_once, again, LIMITS) == NOW + LIMITS.first_delay
    assert next_start(later, again, LIMITS) == NOW
    healthy = look(split(run=3, started=NOW - LIMITS.healthy), lead=None)
    assert count_crashes(healthy, again, LIMITS) == {}
    long_run = ended(1, started=NOW - LIMITS.healthy)
    late = count_crashes(look(split(**long_run, run=3), lead=None), again, LIMITS)
    assert late == {"split-0": Crashes(3, 1)}


def test_member_is_not_restarted_during_back_off() -> None:
    memory = ControllerState(crashes={"split-0": Crashes(run=1, count=4)})
    crashed = split(**ended(1, started=NOW), run=1)
    assert actions(look(crashed, lead=None), memory) == []
    assert waits(look(crashed, lead=None), memory) == ["split-0"]
    later = look(crashed, lead=None, now=NOW + LIMITS.delay_after(4))
    assert isinstance(actions(later, memory)[0], Restart)

"""Rules that hold whatever happens, tried in a world that carries decisions out."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.policy.world import LIMITS, NAMES, World
from tests.repeatable import thorough

from tandem.policy.controller_state import RecoveryStage
from tandem.policy.decide import decide
from tandem.policy.decisions import Promote, RecordEvent
from tandem.policy.snapshot import Life
from tandem.policy.status.conditions import Background
from tandem.policy.status.status import status_of
from tandem_core.model.pipeline import parse_status, status_document
from tandem_core.model.states import EventReason
from tandem_core.model.status import Status

PAIRS = ("pair-0", "pair-1")
Action = Callable[[World], object]


def _fault(kind: str, name: str) -> Action:
    actions: dict[str, Action] = {
        "kill": lambda world: world.end(name, -9),
        "crash": lambda world: world.end(name, 1),
        "leave": lambda world: world.end(name, 0),
        "lose": lambda world: world.lose(name),
        "freeze": lambda world: world.freeze(name),
        "thaw": lambda world: world.thaw(name),
    }
    return actions[kind]


# Mostly one pair and the lead are struck, so that failures meet.
names = st.one_of(st.sampled_from(["pair-0-a", "pair-0-b", "split-0"]), st.sampled_from(NAMES))
faults = st.builds(
    _fault, st.sampled_from(["kill", "crash", "leave", "lose", "freeze", "thaw"]), names
)
waits = st.sampled_from([0.2, 0.2, 1.0, 3.0, 12.0, 70.0]).map(
    lambda seconds: lambda world: world.turn(seconds)
)
together = st.lists(faults, min_size=2, max_size=3).map(
    lambda several: lambda world: [fault(world) for fault in several]
)
lives = st.lists(st.one_of(faults, together, waits), max_size=60)


def whole() -> World:
    world = World()
    for _ in range(8):
        world.decide()
        world.turn(0.2)
    assert len(world.full) == 4
    return world


def live(world: World, actions: list[Action], check: Callable[[World], Any]) -> None:
    for act in actions:
        act(world)
        world.decide()
        check(world)


@thorough(60)
@given(lives)
def test_last_copy_of_pair_is_never_replaced(actions: list[Action]) -> None:
    def state_is_kept(world: World) -> None:
        assert set(world.full.values()) == set(PAIRS)

    live(whole(), actions, state_is_kept)


@thorough(60)
@given(lives)
def test_promoted_primary_always_holds_state(
    actions: list[Action],
) -> None:
    world = whole()
    for act in actions:
        act(world)
        holding = {p.volume for p in world.processes.values() if p.volume in world.full}
        decisions = world.decide()
        promoted = [each for each in decisions if isinstance(each, Promote)]
        assert len({each.pair for each in promoted}) == len(promoted)
        assert all(each.volume in holding for each in promoted)
        for each in promoted:
            assert world.memory.pair(each.pair).primary == each.volume


@thorough(60)
@given(lives)
def test_failover_events_come_in_order(actions: list[Action]) -> None:
    world = whole()
    live(world, actions, lambda _: None)
    for pair in PAIRS:
        before: EventReason | None = None
        for each in world.said:
            if not isinstance(each, RecordEvent) or each.subject != pair:
                continue
            if each.event is EventReason.PAIRED:
                assert before is EventReason.CATCH_UP_STARTED
            before = each.event
    take_overs = [e for e in world.said if isinstance(e, RecordEvent) and e.event == "Failover"]
    assert world.memory.totals.counters.take_overs == len(take_overs)


@thorough(60)
@given(lives)
def test_decide_is_idempotent_on_unchanged_snapshot(actions: list[Action]) -> None:
    def says_it_once(world: World) -> None:
        snapshot = world.snapshot()
        first = decide(snapshot, world.memory, LIMITS)
        second = decide(snapshot, first.memory, LIMITS)
        assert second.memory == first.memory
        assert not [each for each in second.decisions if isinstance(each, Promote | RecordEvent)]
        assert [e for e in first.decisions if not isinstance(e, Promote | RecordEvent)] == list(
            second.decisions
        )

    live(whole(), actions, says_it_once)


@thorough(40)
@given(lives)
def test_pipeline_recovers_fully_once_faults_stop(actions: list[Action]) -> None:
    world = whole()
    live(world, actions, lambda _: None)
    if world.memory.completed:
        return
    for name in NAMES:
        world.thaw(name)
    for _ in range(80):
        world.turn(1.0)
        world.decide()
    assert not world.memory.completed
    assert all(process.life is Life.UP for process in world.processes.values())
    assert all(world.memory.pair(pair).stage is RecoveryStage.WHOLE for pair in PAIRS)
    assert all(world.memory.pair(pair).paired for pair in PAIRS)
    assert len(world.full) == 4


@thorough(40)
@given(lives)
def test_status_round_trips_and_transition_time_changes_with_condition(
    actions: list[Action],
) -> None:
    world = whole()
    previous = [Status()]

    def reads_back(world: World) -> None:
        at = f"2024-01-01T00:00:{len(previous) % 60:02d}Z"
        background = Background(at, LIMITS, one_machine=True)
        status = status_of(world.snapshot(), world.memory, background, previous[-1])
        assert parse_status(status_document(status)) == status
        before = {each.type: each for each in previous[-1].conditions}
        for condition in status.conditions:
            old = before.get(condition.type)
            if old is not None and old.status is condition.status:
                assert condition.last_transition_time == old.last_transition_time
            else:
                assert condition.last_transition_time == at
        previous.append(status)

    live(world, actions, reads_back)

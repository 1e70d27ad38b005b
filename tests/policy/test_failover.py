from dataclasses import replace

from tests.policy.builders import BOTH_SEATS, NOW, ended, lead, look, merge, replica, seat, split

from tandem.policy.controller_state import ControllerState
from tandem.policy.decide import decide, low_priority_members
from tandem.policy.decisions import Promote, RecordEvent
from tandem.policy.recovery.pairs import look_at, state_of
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.reports import (
    DriverState,
    MemberEvent,
    MergeState,
    ReplicaState,
    SplitState,
    Trouble,
)
from tandem_core.model.states import EventReason, PairState

LIMITS = Timeouts()
JOINING = ReplicaState(state=DriverState.JOINING)


def follow(*snapshots: Snapshot) -> tuple[list[Promote | RecordEvent], ControllerState]:
    """What is said of roles and events along these looks."""
    memory, said = ControllerState(), []
    for snapshot in snapshots:
        outcome = decide(snapshot, memory, LIMITS)
        said += [each for each in outcome.decisions if isinstance(each, Promote | RecordEvent)]
        memory = outcome.memory
    return said, memory


def events(said: list[Promote | RecordEvent]) -> list[EventReason]:
    return [each.event for each in said if isinstance(each, RecordEvent)]


def state(snapshot: Snapshot, memory: ControllerState) -> PairState:
    return state_of(look_at(snapshot, "pair-0", LIMITS), memory.pair("pair-0"))


WHOLE = look(split(), replica(), replica("pair-0-b"))


def a_is(**fields: object) -> Snapshot:
    return look(split(), replica(**fields), replica("pair-0-b"))


def test_the_first_to_hold_the_state_is_primary_without_an_event() -> None:
    booting = replica(life=Life.STARTING, says=None)
    said, memory = follow(look(booting, replica("pair-0-b", life=Life.STARTING, says=None)), WHOLE)
    assert [(each.name, each.volume) for each in said if isinstance(each, Promote)] == [
        ("pair-0-a", "v-pair-0-a")
    ]
    assert events(said) == []
    assert state(WHOLE, memory) is PairState.PAIRED


def test_a_killed_primary_gives_take_over_catch_up_and_paired_in_this_order() -> None:
    said, memory = follow(
        WHOLE,
        a_is(**ended(-9)),
        a_is(life=Life.STARTING, says=None, run=2),
        a_is(says=JOINING, run=2),
        a_is(run=2),
    )
    assert events(said) == [
        EventReason.FAILOVER,
        EventReason.CATCH_UP_STARTED,
        EventReason.PAIRED,
    ]
    assert memory.pair("pair-0").primary == "v-pair-0-b"
    assert memory.totals.counters.take_overs == 1


def test_a_killed_secondary_takes_nothing_over() -> None:
    b = replica("pair-0-b", **ended(-9))
    said, memory = follow(WHOLE, look(split(), replica(), b), a_is(), WHOLE)
    assert events(said) == [EventReason.CATCH_UP_STARTED, EventReason.PAIRED]
    assert memory.pair("pair-0").primary == "v-pair-0-a"
    assert memory.totals.counters.take_overs == 0


def test_a_frozen_primary_is_taken_over_and_comes_back_as_secondary() -> None:
    frozen = a_is(silent_since=NOW - LIMITS.unheard)
    said, memory = follow(WHOLE, frozen, frozen, WHOLE, WHOLE)
    assert events(said) == [
        EventReason.FAILOVER,
        EventReason.CATCH_UP_STARTED,
        EventReason.PAIRED,
    ]
    assert memory.pair("pair-0").primary == "v-pair-0-b"


def test_a_primary_that_starts_after_a_pause_is_waited_for() -> None:
    """Roles outlive the one who decides; a slower start is no failure."""
    known = follow(WHOLE)[1].pair("pair-0")
    memory = ControllerState(pairs={"pair-0": replace(known, stood=frozenset(), formed=False)})
    outcome = decide(a_is(says=JOINING), memory, LIMITS)
    assert [each for each in outcome.decisions if isinstance(each, Promote | RecordEvent)] == []
    failed = decide(a_is(**ended(1)), outcome.memory, LIMITS)
    assert any(isinstance(each, Promote) for each in failed.decisions)


def test_when_both_fail_the_first_to_return_is_primary() -> None:
    def both(a: MemberSnapshot, b: MemberSnapshot) -> Snapshot:
        return look(split(), a, b)

    a_gone, b_gone = replica(**ended(-9)), replica("pair-0-b", **ended(-9))
    said, memory = follow(
        WHOLE,
        both(a_gone, b_gone),
        both(replica(says=JOINING, run=2), b_gone),
        both(replica(says=JOINING, run=2), replica("pair-0-b", run=2)),
        both(replica(run=2), replica("pair-0-b", run=2)),
    )
    assert events(said) == [
        EventReason.FAILOVER,
        EventReason.CATCH_UP_STARTED,
        EventReason.PAIRED,
    ]
    assert memory.pair("pair-0").primary == "v-pair-0-b"


def test_states_of_a_pair() -> None:
    _, memory = follow(WHOLE)
    down = look(replica(**ended(1)), replica("pair-0-b", silent_since=NOW - 5))
    assert state(down, decide(down, memory, LIMITS).memory) is PairState.DOWN
    new = look(replica(says=JOINING), replica("pair-0-b", says=None, life=Life.STARTING))
    assert state(new, follow(new)[1]) is PairState.STARTING
    alone = a_is(**ended(1))
    assert state(alone, decide(alone, memory, LIMITS).memory) is PairState.ALONE
    catching_up = a_is(says=JOINING, run=2)
    assert state(catching_up, decide(catching_up, memory, LIMITS).memory) is PairState.CATCHING_UP
    single = look(replica(), lead=lead(seat("pair-0-a")))
    assert state(single, follow(single)[1]) is PairState.ALONE


def test_a_pair_does_not_flicker_for_being_a_few_epochs_apart() -> None:
    def apart(epochs: int) -> Snapshot:
        seats = lead(
            seat("pair-0-a", committed=20), seat("pair-0-b", committed=20 - epochs, synced=False)
        )
        return look(split(), replica(), replica("pair-0-b"), lead=seats)

    for far, paired_before, paired_new in ((1, True, True), (4, True, False), (5, False, False)):
        snapshot = apart(far)
        assert follow(WHOLE, snapshot)[1].pair("pair-0").paired is paired_before
        assert follow(snapshot)[1].pair("pair-0").paired is paired_new


def test_without_a_lead_a_pair_stays_what_it_was() -> None:
    leaderless = look(split(), replica(), replica("pair-0-b"), lead=None)
    assert follow(WHOLE, leaderless)[1].pair("pair-0").paired
    assert not follow(leaderless)[1].pair("pair-0").paired


def test_replicas_that_end_because_everything_ends_are_not_taken_over() -> None:
    said, memory = follow(WHOLE, a_is(**ended(0)), look(lead=None))
    assert events(said) == []
    assert memory.totals.counters.take_overs == 0


def test_who_catches_up_yields_and_who_is_waited_for_does_not() -> None:
    _, memory = follow(WHOLE)
    rejoining = a_is(says=JOINING, run=2)
    after = decide(rejoining, memory, LIMITS).memory
    assert low_priority_members(rejoining, after, LIMITS) == {"pair-0-a"}
    assert low_priority_members(WHOLE, memory, LIMITS) == frozenset()
    both = look(replica(says=JOINING), replica("pair-0-b", says=JOINING))
    assert low_priority_members(both, follow(both)[1], LIMITS) == frozenset()
    beginning = look(replica(), replica("pair-0-b", says=JOINING))
    assert low_priority_members(beginning, follow(beginning)[1], LIMITS) == frozenset()


def test_a_twin_whose_spark_is_not_up_does_not_make_a_pair() -> None:
    holding = replica().replica
    assert holding is not None
    booting = a_is(says=holding.replace(state=DriverState.BOOTING), run=2)
    assert not follow(WHOLE, booting)[1].pair("pair-0").paired
    assert follow(WHOLE, a_is(run=2))[1].pair("pair-0").paired


def test_events_that_follow_from_what_members_say_come_once() -> None:
    closed = MemberEvent(1, "LaneClosed", "lane 1")
    differ = MemberEvent(2, "TwinsDiffer", "pair-0 epoch 7", "v-pair-0-b")
    noise = MemberEvent(3, "HeaderPublished", "8")
    talking = split()
    assert talking.report is not None
    talking = replace(talking, report=talking.report.replace(events=(closed, differ, noise)))
    lossy = BOTH_SEATS.replace(lost=("pair-0",))
    said, _ = follow(
        look(talking, merge(), lead=lossy),
        look(replace(talking, report=None), merge(), lead=None),
        look(talking, merge(), lead=lossy),
    )
    assert events(said) == [
        EventReason.DATA_LOST,
        EventReason.LANE_CLOSED,
        EventReason.TWINS_DIFFER,
    ]


def test_a_source_or_sink_that_fails_is_told_once_until_it_works_again() -> None:
    typo = Trouble(EventReason.SOURCE_FAILED, "clicks", "not there", "mend the path")
    other = typo.replace(message="not there either")
    rewound = Trouble(EventReason.SINK_REWOUND, "out")
    failing = split(says=SplitState(troubles=(typo, other)))
    both = split("split-1", says=SplitState(troubles=(other,)))
    said, memory = follow(
        look(failing, merge()),
        look(failing, both, merge()),
        look(split(), both, merge(says=MergeState(active=True, troubles=(rewound,)))),
        look(split(), split("split-1"), merge()),
        look(failing, split("split-1"), merge()),
    )
    records = [each for each in said if isinstance(each, RecordEvent)]
    assert [(each.event, each.subject) for each in records] == [
        (EventReason.SOURCE_FAILED, "clicks"),
        (EventReason.SINK_REWOUND, "out"),
        (EventReason.SOURCE_FAILED, "clicks"),
    ]
    assert records[0].message.endswith(typo.text)
    assert memory.failing == {(EventReason.SOURCE_FAILED, "clicks")}


def test_another_lead_is_an_event_the_first_is_none() -> None:
    splits = (split(), split("split-1"))
    silent = Snapshot(NOW, splits)
    first = Snapshot(NOW, splits, BOTH_SEATS, "v-split-0")
    second = Snapshot(NOW, splits, BOTH_SEATS, "v-split-1")
    said, memory = follow(silent, first, silent, first, second, second)
    assert [(each.event, each.subject) for each in said if isinstance(each, RecordEvent)] == [
        (EventReason.LEAD_CHANGED, "split-1")
    ]
    assert memory.lead == "split-1"


def test_who_leads_for_a_moment_when_everything_ends_is_no_event() -> None:
    splits = (split(**ended(0)), split("split-1"))
    before = Snapshot(NOW, (split(), split("split-1")), BOTH_SEATS, "v-split-0")
    over = Snapshot(NOW, splits, BOTH_SEATS.replace(completed=True), "v-split-1")
    said, memory = follow(before, over)
    assert events(said) == []
    assert memory.completed


def test_a_closed_lane_is_told_by_the_name_of_its_split_also_after_that_is_gone() -> None:
    closed = MemberEvent(1, "LaneClosed", "v-split-1/4 at 129")
    reporting = split()
    assert reporting.report is not None
    reporting = replace(reporting, report=reporting.report.replace(events=(closed,)))
    said, _ = follow(look(split(), split("split-1")), look(reporting))
    (told,) = (each for each in said if isinstance(each, RecordEvent))
    assert (told.event, told.subject) == (EventReason.LANE_CLOSED, "split-1")
    assert "129" in told.message
    assert "v-split-1" not in told.message

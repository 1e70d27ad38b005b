from dataclasses import replace

import pytest
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


def test_first_replica_with_state_becomes_primary_without_event() -> None:
    booting = replica(life=Life.STARTING, says=None)
    said, memory = follow(look(booting, replica("pair-0-b", life=Life.STARTING, says=None)), WHOLE)
    assert [(each.name, each.volume) for each in said if isinstance(each, Promote)] == [
        ("pair-0-a", "v-pair-0-a")
    ]
    assert events(said) == []
    assert state(WHOLE, memory) is PairState.PAIRED


def test_killed_primary_emits_failover_catch_up_and_paired_in_order() -> None:
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


def test_killed_secondary_causes_no_failover() -> None:
    b = replica("pair-0-b", **ended(-9))
    said, memory = follow(WHOLE, look(split(), replica(), b), a_is(), WHOLE)
    assert events(said) == [EventReason.CATCH_UP_STARTED, EventReason.PAIRED]
    assert memory.pair("pair-0").primary == "v-pair-0-a"
    assert memory.totals.counters.take_overs == 0


def test_frozen_primary_fails_over_and_returns_as_secondary() -> None:
    frozen = a_is(silent_since=NOW - LIMITS.unheard)
    said, memory = follow(WHOLE, frozen, frozen, WHOLE, WHOLE)
    assert events(said) == [
        EventReason.FAILOVER,
        EventReason.CATCH_UP_STARTED,
        EventReason.PAIRED,
    ]
    assert memory.pair("pair-0").primary == "v-pair-0-b"


def test_slow_starting_primary_is_not_failed_over() -> None:
    """Roles outlive the one who decides; a slower start is no failure."""
    known = follow(WHOLE)[1].pair("pair-0")
    memory = ControllerState(pairs={"pair-0": replace(known, stood=frozenset(), formed=False)})
    outcome = decide(a_is(says=JOINING), memory, LIMITS)
    assert [each for each in outcome.decisions if isinstance(each, Promote | RecordEvent)] == []
    failed = decide(a_is(**ended(1)), outcome.memory, LIMITS)
    assert any(isinstance(each, Promote) for each in failed.decisions)


def test_first_replica_with_state_after_double_failure_is_primary() -> None:
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


def test_pair_state_follows_its_replicas() -> None:
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


def test_pair_stays_paired_while_few_epochs_apart() -> None:
    def apart(epochs: int) -> Snapshot:
        seats = lead(
            seat("pair-0-a", committed=20), seat("pair-0-b", committed=20 - epochs, synced=False)
        )
        return look(split(), replica(), replica("pair-0-b"), lead=seats)

    for far, paired_before, paired_new in ((1, True, True), (4, True, False), (5, False, False)):
        snapshot = apart(far)
        assert follow(WHOLE, snapshot)[1].pair("pair-0").paired is paired_before
        assert follow(snapshot)[1].pair("pair-0").paired is paired_new


def test_pair_state_is_kept_without_lead() -> None:
    leaderless = look(split(), replica(), replica("pair-0-b"), lead=None)
    assert follow(WHOLE, leaderless)[1].pair("pair-0").paired
    assert not follow(leaderless)[1].pair("pair-0").paired


def test_completed_replicas_are_not_failed_over() -> None:
    said, memory = follow(WHOLE, a_is(**ended(0)), look(lead=None))
    assert events(said) == []
    assert memory.totals.counters.take_overs == 0


def test_only_rejoining_replica_gets_low_priority() -> None:
    _, memory = follow(WHOLE)
    rejoining = a_is(says=JOINING, run=2)
    after = decide(rejoining, memory, LIMITS).memory
    assert low_priority_members(rejoining, after, LIMITS) == {"pair-0-a"}
    assert low_priority_members(WHOLE, memory, LIMITS) == frozenset()
    both = look(replica(says=JOINING), replica("pair-0-b", says=JOINING))
    assert low_priority_members(both, follow(both)[1], LIMITS) == frozenset()
    beginning = look(replica(), replica("pair-0-b", says=JOINING))
    assert low_priority_members(beginning, follow(beginning)[1], LIMITS) == frozenset()


def test_pair_is_not_paired_while_twin_boots_spark() -> None:
    holding = replica().replica
    assert holding is not None
    booting = a_is(says=holding.replace(state=DriverState.BOOTING), run=2)
    assert not follow(WHOLE, booting)[1].pair("pair-0").paired
    assert follow(WHOLE, a_is(run=2))[1].pair("pair-0").paired


def test_member_events_are_emitted_once() -> None:
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
    differing = said[-1]
    assert isinstance(differing, RecordEvent)
    assert "check the query" in differing.detail


def test_source_or_sink_failure_is_emitted_once_until_recovery() -> None:
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
        (EventReason.SOURCE_FAILED, "stream clicks"),
        (EventReason.SINK_REWOUND, "sink out"),
        (EventReason.SOURCE_FAILED, "stream clicks"),
    ]
    assert records[0].message.endswith(typo.text)
    assert memory.failing == {(EventReason.SOURCE_FAILED, "clicks")}


def test_change_of_lead_is_an_event_but_first_lead_is_not() -> None:
    splits = (split(), split("split-1"))
    silent = Snapshot(NOW, splits)
    first = Snapshot(NOW, splits, BOTH_SEATS, "v-split-0")
    second = Snapshot(NOW, splits, BOTH_SEATS, "v-split-1")
    said, memory = follow(silent, first, silent, first, second, second)
    assert [(each.event, each.subject) for each in said if isinstance(each, RecordEvent)] == [
        (EventReason.LEAD_CHANGED, "split-1")
    ]
    assert memory.lead == "split-1"


def test_change_of_lead_at_completion_is_no_event() -> None:
    splits = (split(**ended(0)), split("split-1"))
    before = Snapshot(NOW, (split(), split("split-1")), BOTH_SEATS, "v-split-0")
    over = Snapshot(NOW, splits, BOTH_SEATS.replace(completed=True), "v-split-1")
    said, memory = follow(before, over)
    assert events(said) == []
    assert memory.completed


def test_closed_lane_event_names_its_split_even_after_removal() -> None:
    closed = MemberEvent(1, "LaneClosed", "v-split-1/4 at 129")
    reporting = split()
    assert reporting.report is not None
    reporting = replace(reporting, report=reporting.report.replace(events=(closed,)))
    said, _ = follow(look(split(), split("split-1")), look(reporting))
    (told,) = (each for each in said if isinstance(each, RecordEvent))
    assert (told.event, told.subject) == (EventReason.LANE_CLOSED, "split-1")
    assert "129" in told.message
    assert "split-0" in told.message
    assert "v-split-1" not in told.message


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("pair-0", "pair-0 is lost: no replica holds its state"),
        ("sinks", "sinks have epochs that the header log has lost"),
        ("lane v-split-0/3", "lane 3 of split-0 has lost chunks"),
        ("lane v-split-1/0", "lane 0 (written by split-1, which is gone) has lost"),
        ("lane v-split-9/0", "lane 0 (written on volume v-split-9) has lost"),
        ("lane old/0", "lane 0 (written by split-0 before it was replaced) has lost"),
        ("slot 1", "slot 1 is recorded in a sink as ended"),
        ("clicks/0", "source partition clicks/0 no longer has rows"),
    ],
)
def test_the_event_of_a_loss_says_what_is_lost(lost: str, said: str) -> None:
    before = look(split(volume="old"), split("split-1"), merge())
    records, _ = follow(before, look(split(), merge(), lead=BOTH_SEATS.replace(lost=(lost,))))
    (told,) = (each for each in records if isinstance(each, RecordEvent))
    assert told.event is EventReason.DATA_LOST
    assert told.message.startswith(said)

from dataclasses import replace
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
    spare,
    split,
)

from tandem.policy.controller_state import ControllerState, remembered
from tandem.policy.decide import decide
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot, Snapshot
from tandem.policy.status.conditions import MOST_LISTED, Background
from tandem.policy.status.status import at_rest, status_of, with_rows_out
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import COMPLETED
from tandem_core.contract.reports import (
    DriverState,
    MergeState,
    ReplicaState,
    SinkReport,
    SplitState,
    Trouble,
)
from tandem_core.model.pipeline import parse_status, status_document
from tandem_core.model.states import (
    ConditionStatus,
    ConditionType,
    EventReason,
    MemberState,
    PairState,
    Phase,
    Role,
    SinkClass,
)
from tandem_core.model.status import MOST_MESSAGE, SinkStatus, Status

LIMITS = Timeouts()
BACKGROUND = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=True)
EVERYBODY = (split(), replica(), replica("pair-0-b"), merge(), merge("merge-1"), spare())


def seen(
    *snapshots: Snapshot, previous: Status | None = None, background: Background = BACKGROUND
) -> Status:
    memory, status = ControllerState(), previous or Status()
    for snapshot in snapshots:
        memory = decide(snapshot, memory, LIMITS).memory
        status = status_of(snapshot, memory, background, status)
    return status


def condition(status: Status, kind: ConditionType) -> tuple[ConditionStatus, str]:
    found = next(each for each in status.conditions if each.type is kind)
    return found.status, found.reason


def of_slots(*slots: int, position: int, rows: int = 0) -> list[MemberSnapshot]:
    """A merge of each of these slots, the first one `position` far, each further one epoch on."""
    return [
        merge(
            f"merge-{place}",
            slot,
            says=MergeState(
                active=True,
                rows_out=rows + place,
                sinks=(SinkReport("out", SinkClass.TRANSACTIONAL, position + place),),
            ),
        )
        for place, slot in enumerate(slots)
    ]


@pytest.mark.parametrize(
    ("replicas", "state", "ready"),
    [
        ((replica(), replica("pair-0-b")), PairState.PAIRED, True),
        ((replica(), replica("pair-0-b", life=Life.ABSENT, says=None)), PairState.ALONE, False),
        ((replica(),), PairState.ALONE, True),
    ],
)
def test_pair_is_ready_with_all_its_replicas(
    replicas: tuple[MemberSnapshot, ...], state: PairState, ready: bool
) -> None:
    status = seen(look(split(), *replicas, merge()))
    assert [(pair.state, pair.ready) for pair in status.pairs] == [(state, ready)]
    assert status.pairs_ready == ("1/1" if ready else "0/1")
    (paired,) = (each for each in status.conditions if each.type is ConditionType.PAIRED)
    assert paired.status is (ConditionStatus.TRUE if ready else ConditionStatus.FALSE)


def test_rows_out_sums_most_advanced_merge_of_each_slot() -> None:
    merges = of_slots(0, 0, 1, position=1, rows=70)
    status = seen(look(split(), replica(), *merges, lead=BOTH_SEATS))
    assert status.counters.rows_out == 71 + 72


def test_rows_of_closed_slots_are_counted_by_slot_0_only() -> None:
    merges = of_slots(0, 1, position=1, rows=70)
    status = seen(look(split(), replica(), *merges, lead=BOTH_SEATS.replace(open_slots=(0,))))
    assert status.counters.rows_out == 70


def test_sink_position_is_that_of_slowest_slot() -> None:
    merges = of_slots(0, 1, 1, position=7)
    status = seen(look(split(), replica(), *merges, lead=BOTH_SEATS.replace(open_slots=(0, 1))))
    assert [sink.position for sink in status.sinks] == [7]
    behind = of_slots(1, 0, 0, position=7)
    status = seen(look(split(), replica(), *behind, lead=BOTH_SEATS.replace(open_slots=(0, 1))))
    assert [sink.position for sink in status.sinks] == [7]


def test_closed_slot_does_not_hold_back_sink_position() -> None:
    merges = of_slots(1, 0, position=7)
    twins = (replica(), replica("pair-0-b"))
    status = seen(look(split(), *twins, *merges, lead=BOTH_SEATS.replace(open_slots=(0,))))
    assert [sink.position for sink in status.sinks] == [8]
    assert condition(status, ConditionType.READY) == (ConditionStatus.TRUE, "Running")


def test_sink_position_is_kept_while_a_slot_is_silent() -> None:
    both = of_slots(0, 1, position=7)
    divided = BOTH_SEATS.replace(open_slots=(0, 1))
    before = seen(look(split(), replica(), *both, lead=divided))
    silent = [*of_slots(0, position=9), merge("merge-1", 1, says=None)]
    after = seen(look(split(), replica(), *silent, lead=divided), previous=before)
    assert after.sinks == before.sinks


def test_running_pipeline_status_is_complete() -> None:
    sinks = (SinkReport("out", SinkClass.TRANSACTIONAL, 9),)
    delivering = merge(says=MergeState(active=True, rows_out=70, sinks=sinks))
    whole = (split(), replica(), replica("pair-0-b"), delivering, merge("merge-1"), spare())
    status = seen(look(*whole, lead=BOTH_SEATS.replace(rows_in=100, lag_seconds=0.25)))
    assert status.phase is Phase.RUNNING
    assert (status.epoch.cut, status.epoch.committed, status.epoch.delivered) == (10, 10, 9)
    assert (status.lag.epochs, status.lag.seconds) == (1, 0.25)
    assert (status.counters.rows_in, status.counters.rows_out) == (100, 70)
    assert status.sinks == (SinkStatus(name="out", delivery=SinkClass.TRANSACTIONAL, position=9),)
    (pair,) = status.pairs
    assert (pair.state, pair.primary, pair.secondary, pair.epoch) == (
        PairState.PAIRED,
        "pair-0-a",
        "pair-0-b",
        10,
    )
    assert [(member.name, member.role, member.state) for member in status.members] == [
        ("split-0", None, MemberState.RUNNING),
        ("pair-0-a", Role.PRIMARY, MemberState.RUNNING),
        ("pair-0-b", Role.SECONDARY, MemberState.RUNNING),
        ("merge-0", None, MemberState.RUNNING),
        ("merge-1", None, MemberState.STANDBY),
        ("spare-0", None, MemberState.STANDBY),
    ]
    for kind, expected in {
        ConditionType.READY: ConditionStatus.TRUE,
        ConditionType.PAIRED: ConditionStatus.TRUE,
        ConditionType.CATCHING_UP: ConditionStatus.FALSE,
        ConditionType.VULNERABLE: ConditionStatus.FALSE,
        ConditionType.CO_LOCATED: ConditionStatus.TRUE,
        ConditionType.DATA_LOST: ConditionStatus.FALSE,
    }.items():
        assert condition(status, kind)[0] is expected


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"life": Life.ABSENT, "says": None}, MemberState.STARTING),
        ({"life": Life.STARTING, "says": None}, MemberState.STARTING),
        ({"says": ReplicaState(state=DriverState.BOOTING)}, MemberState.STARTING),
        ({"says": ReplicaState(state=DriverState.JOINING)}, MemberState.CATCHING_UP),
        ({"silent_since": NOW - 5}, MemberState.SILENT),
        (ended(1), MemberState.GONE),
    ],
)
def test_replica_fields_map_to_member_state(fields: dict[str, Any], state: MemberState) -> None:
    status = seen(look(split(), replica(), replica("pair-0-b", **fields), merge()))
    member = next(each for each in status.members if each.name == "pair-0-b")
    assert member.state is state
    running = fields.get("life", Life.UP) in {Life.STARTING, Life.UP}
    assert (member.pid is not None) is running


def test_condition_messages_are_truncated() -> None:
    note = "Unschedulable: " + "no node has room, " * 20
    pairs = [f"pair-{number}" for number in range(1024)]
    waiting = [
        replica(f"{pair}-{twin}", pair, life=Life.STARTING, says=None, note=note)
        for pair in pairs
        for twin in "ab"
    ]
    vulnerable = tuple(f"{pair} of a split with quite a long name" for pair in pairs * 10)
    snapshot = look(split(), *waiting, merge(), lead=BOTH_SEATS.replace(vulnerable=vulnerable))
    halted = replace(BACKGROUND, halted=Complaint("SinkFailed", "x" * 2 * MOST_MESSAGE))
    for status in (seen(snapshot), seen(snapshot, background=halted)):
        assert parse_status(status_document(status)) == status
    ready, vulnerability = (
        next(each.message for each in seen(snapshot).conditions if each.type is kind)
        for kind in (ConditionType.READY, ConditionType.VULNERABLE)
    )
    assert "; pair-0-a: Unschedulable: " in ready
    assert ready.endswith(f"; and {len(waiting) - MOST_LISTED} more")
    assert len(vulnerability) == MOST_MESSAGE
    assert vulnerability.endswith("…")


def test_epoch_and_generation_are_kept_without_lead() -> None:
    before = seen(look(*EVERYBODY))
    after = seen(look(*EVERYBODY, lead=None), previous=before)
    assert after.epoch == before.epoch
    assert after.generation == before.generation
    assert condition(after, ConditionType.READY) == (ConditionStatus.FALSE, "NoLead")
    assert condition(after, ConditionType.VULNERABLE)[0] is ConditionStatus.UNKNOWN


def test_lag_grows_while_there_is_no_lead() -> None:
    told = look(*EVERYBODY, lead=BOTH_SEATS.replace(lag_seconds=0.25))
    unheard = [look(*EVERYBODY, lead=None, now=NOW + later) for later in (1, 4)]
    assert [seen(told, *unheard[:looks]).lag.seconds for looks in (0, 1, 2)] == [0.25, 1.25, 4.25]
    # Somebody else decides by now, who knows the status alone.
    assert seen(unheard[0], previous=seen(told)).lag.seconds == 0.25
    delivered = look(*EVERYBODY, lead=BOTH_SEATS.replace(delivered=10))
    assert seen(delivered, *unheard).lag.seconds == 0


def test_every_condition_of_a_healthy_pipeline_has_reason_and_message() -> None:
    (_, *others) = (status := seen(look(*EVERYBODY))).conditions
    assert [(each.type, each.reason) for each in others] == [
        (ConditionType.PAIRED, "AllPaired"),
        (ConditionType.CATCHING_UP, "NoReplicaCatchingUp"),
        (ConditionType.REBALANCING, "NoChange"),
        (ConditionType.PROGRESSING, "AsDeclared"),
        (ConditionType.VULNERABLE, "FullyReplicated"),
        (ConditionType.CO_LOCATED, "SharedMachine"),
        (ConditionType.DATA_LOST, "NoDataLoss"),
    ]
    assert all(each.message for each in status.conditions)


def test_conditions_name_members_where_the_lead_names_volumes() -> None:
    (lane, *_) = EVERYBODY
    vulnerable = (f"lane {lane.volume}/3", "lane v-split-1/0", "pair-0")
    gone = "written by split-1, which is gone"
    before = look(*EVERYBODY, split("split-1"))
    status = seen(before, look(*EVERYBODY, lead=BOTH_SEATS.replace(vulnerable=vulnerable)))
    (said,) = (each for each in status.conditions if each.type is ConditionType.VULNERABLE)
    assert (said.status, said.reason) == (ConditionStatus.TRUE, "UnderReplicated")
    assert said.message.endswith(f"lane 3 of {lane.name}, lane 0 ({gone}), pair-0")


def test_ready_reason_explains_unready_pipeline() -> None:
    whole = look(*EVERYBODY)
    no_merge = look(split(), replica(), replica("pair-0-b"), merge("merge-1"))
    assert condition(seen(no_merge), ConditionType.READY)[1] == "NoActiveMerge"
    down = look(split(), replica(**ended(1)), replica("pair-0-b", **ended(-9)), merge())
    status = seen(whole, down)
    assert condition(status, ConditionType.READY)[1] == "PairDown"
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    assert "pair-0-b was killed (signal 9)" in ready.message
    halted = replace(BACKGROUND, halted=Complaint("Broken", "it does not work", "mend it"))
    status = seen(whole, background=halted)
    assert status.phase is Phase.HALTED
    assert condition(status, ConditionType.READY)[1] == "Broken"
    assert condition(at_rest(status, BACKGROUND.at), ConditionType.READY)[1] == "Broken"
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    assert ready.message.split("; ") == ["it does not work", "mend it"]


@pytest.mark.parametrize("has_lead", [True, False])
def test_silent_members_are_named_while_something_blocks(has_lead: bool) -> None:
    unheard = {"silent_since": NOW - LIMITS.unheard}
    silent = (split(**({} if has_lead else unheard)), replica(**unheard), merge())
    pair_lead = BOTH_SEATS if has_lead else None
    status = seen(look(*EVERYBODY), look(*silent, replica("pair-0-b", **unheard), lead=pair_lead))
    reason = "PairDown" if has_lead else "NoLead"
    assert condition(status, ConditionType.READY) == (ConditionStatus.FALSE, reason)
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    # The operator alone may be cut off: what it cannot see is no fact.
    assert "operator" in ready.message
    assert "; if " in ready.message
    assert ("split-0 does not answer" in ready.message) is not has_lead
    assert all(f"pair-0-{twin} does not answer" in ready.message for twin in "ab")
    one = look(split(), replica(), replica("pair-0-b", **unheard), merge())
    ready = next(each for each in seen(one).conditions if each.type is ConditionType.READY)
    assert ready.status is ConditionStatus.TRUE
    assert "does not answer" not in ready.message


def test_pods_that_cannot_be_created_are_named_by_what_they_belong_to() -> None:
    missing: dict[str, Any] = {"life": Life.ABSENT, "volume": None, "says": None, "note": "quota"}
    places = (
        split("split/missing-0", **missing),
        replica("pair-0/missing-0", **missing),
        merge("merge-0/missing-0", **missing),
    )
    status = seen(look(*places))
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    assert ready.message.count("quota") == len(places)
    assert all(each in ready.message for each in ("splits", "pair-0", "merge slot 0"))
    assert "missing-" not in ready.message


def test_pipeline_that_lost_data_is_halted_and_not_ready() -> None:
    halted = replace(BACKGROUND, halted=Complaint("Broken", "it does not work"))
    for background in (BACKGROUND, halted):
        status = seen(
            look(*EVERYBODY, lead=BOTH_SEATS.replace(lost=("pair-0",))), background=background
        )
        assert status.phase is Phase.HALTED
        assert condition(status, ConditionType.READY) == (ConditionStatus.FALSE, "DataLost")
        assert condition(status, ConditionType.DATA_LOST) == (ConditionStatus.TRUE, "DataLost")


def test_source_or_sink_failure_makes_pipeline_unready() -> None:
    typo = Trouble(EventReason.SOURCE_FAILED, "clicks", "/clcks is not there", "mend the path")
    full = Trouble(EventReason.SINK_FAILED, "results", "/out is full", "make room")
    reading = [split(name, says=SplitState(troubles=(typo,))) for name in ("split-0", "split-1")]
    pair = (replica(), replica("pair-0-b"))
    stuck = merge(says=MergeState(active=True, troubles=(full,)))
    status = seen(look(*reading, *pair, stuck))
    assert condition(status, ConditionType.READY) == (ConditionStatus.FALSE, "SinkFailed")
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    told = (typo.subject, typo.message, typo.hint, full.subject, full.message, full.hint)
    assert [ready.message.count(each) for each in told] == [1] * len(told)
    status = seen(look(*reading, *pair, merge()))
    assert condition(status, ConditionType.READY) == (ConditionStatus.FALSE, "SourceFailed")
    starting = look(*reading, replica(says=None), merge(), lead=lead())
    assert condition(seen(starting), ConditionType.READY)[1] == "SourceFailed"
    status = seen(look(split(**ended(1), says=SplitState(troubles=(typo,))), *pair, merge()))
    assert condition(status, ConditionType.READY) == (ConditionStatus.TRUE, "Running")


def test_reason_of_what_blocks_comes_before_that_of_a_failed_action() -> None:
    failed = replace(BACKGROUND, trouble=Complaint("ApplyFailed", "the quota is exceeded"))
    down = look(split(), replica(**ended(1)), replica("pair-0-b", **ended(1)), merge())
    status = seen(look(*EVERYBODY), down, background=failed)
    assert condition(status, ConditionType.READY) == (ConditionStatus.FALSE, "PairDown")
    ready = next(each for each in status.conditions if each.type is ConditionType.READY)
    assert failed.trouble is not None
    assert failed.trouble.text in ready.message
    status = seen(look(*EVERYBODY), background=failed)
    assert condition(status, ConditionType.READY) == (ConditionStatus.TRUE, "ApplyFailed")


def test_a_pipeline_whose_sources_are_suspended_is_ready_and_says_so() -> None:
    suspended = replace(BACKGROUND, suspended=True)
    status = seen(look(*EVERYBODY), background=suspended)
    assert status.phase is Phase.SUSPENDED
    assert condition(status, ConditionType.READY) == (ConditionStatus.TRUE, "Running")
    crashed = (split(), replica(), replica("pair-0-b", **ended(1)), merge(), spare())
    for snapshot in (look(*EVERYBODY), look(*crashed)):
        said = next(
            each.message
            for each in seen(snapshot, background=suspended).conditions
            if each.type is ConditionType.READY
        )
        assert said.startswith("sources are suspended; what was read is delivered")
        assert ("pair-0-b" in said) is (snapshot.members[2].life is Life.ENDED)


def test_completed_pipeline_keeps_pair_statuses() -> None:
    over = look(
        split(**ended(COMPLETED)),
        replica(**ended(COMPLETED)),
        replica("pair-0-b", **ended(COMPLETED)),
        merge(**ended(COMPLETED)),
        lead=None,
    )
    status = seen(look(*EVERYBODY), over)
    assert status.phase is Phase.COMPLETED
    assert status.epoch.delivered == status.epoch.cut == 10
    assert [pair.state for pair in status.pairs] == [PairState.PAIRED]
    resting = at_rest(status, "2024-02-02T00:00:00Z")
    assert resting.pairs == status.pairs
    assert condition(resting, ConditionType.READY) == (ConditionStatus.FALSE, "Completed")


def test_stopped_pipeline_has_no_running_members() -> None:
    resting = at_rest(seen(look(*EVERYBODY)), "2024-02-02T00:00:00Z")
    assert {member.state for member in resting.members} == {MemberState.GONE}
    assert {member.pid for member in resting.members} == {None}
    assert [pair.state for pair in resting.pairs] == [PairState.DOWN]
    ready = next(each for each in resting.conditions if each.type is ConditionType.READY)
    assert (ready.reason, ready.last_transition_time) == ("NotRunning", "2024-02-02T00:00:00Z")
    assert with_rows_out(resting, 5).counters.rows_out == 5
    assert with_rows_out(with_rows_out(resting, 5), 3).counters.rows_out == 5


def test_totals_continue_when_counters_reset() -> None:
    def counting(duplicates: int, late: int, incarnation: int) -> Snapshot:
        says = ReplicaState(DriverState.RUNNING, 10, verified=True, late_dropped=late)
        a, b = replica(says=says), replica("pair-0-b", says=says)
        m = merge(says=MergeState(active=True, duplicates_dropped=duplicates))
        assert a.report is not None
        assert m.report is not None
        return look(
            split(),
            replace(a, report=a.report.replace(incarnation=incarnation)),
            b,
            replace(m, report=m.report.replace(incarnation=incarnation)),
        )

    late = ReplicaState(DriverState.RUNNING, 10, verified=True, late_dropped=3)
    twin = replica("pair-0-b", says=late)
    unheard = look(split(), replica(says=None), twin, merge(says=None))
    counters = seen(
        counting(0, 0, 1), counting(5, 3, 1), unheard, counting(7, 3, 1), counting(2, 1, 2)
    ).counters
    assert counters.duplicates_dropped == 9
    assert counters.late_dropped == 3


def test_dead_letter_count_is_kept_without_lead() -> None:
    told = look(*EVERYBODY, lead=BOTH_SEATS.replace(rejected=5))
    status = seen(told, look(*EVERYBODY, lead=None))
    assert status.counters.dead_letters == 5
    restarted = remembered({}, status)
    assert decide(told, restarted, LIMITS).memory.totals.counters.dead_letters == 5

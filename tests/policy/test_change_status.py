"""What a status shows while pairs are built, cut and retired, and what it does not count."""

from dataclasses import replace
from typing import Any

import pytest
from tests.policy.builders import ended, look, merge, replica, spare, split
from tests.policy.generations import (
    ABANDONED,
    BEGAN_MS,
    BUILDING,
    CUTTING,
    DONE,
    FIRST,
    LATE,
    NEW,
    OLD,
    PLANNED,
    RETIRING,
    SECOND,
    leading,
    pair,
    seats,
    splitting,
)

from tandem.policy.controller_state import ControllerState, Crashes
from tandem.policy.decide import decide
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.status.conditions import Background
from tandem.policy.status.decision_line import observed_by
from tandem.policy.status.status import status_of
from tandem.policy.status.steps import Action, Step
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.intent import Intent, KeyMove, PastChange
from tandem_core.contract.reports import LeadReport, PairReport
from tandem_core.model.change import MOST_REASON
from tandem_core.model.pipeline import parse_status, status_document
from tandem_core.model.states import (
    ChangeStage,
    ConditionStatus,
    ConditionType,
    MemberState,
    PairStanding,
    PairState,
)
from tandem_core.model.status import Condition, Status, describe_change

BACKGROUND = Background("2024-05-01T12:00:00Z", Timeouts(), one_machine=False, selector="a=b")
EVERYBODY = (split(), merge(), merge("merge-1"), *pair(OLD), *pair("pair-1"), *pair("pair-2"))


def shown(intent: Intent, lead: LeadReport | None, *members: MemberSnapshot) -> Status:
    """The status of everybody, `members` in the place of others, as it is published."""
    there = {each.name: each for each in members}
    snapshot = look(
        *(there.pop(m.name, m) for m in EVERYBODY), *there.values(), lead=lead, intent=intent
    )
    memory = decide(snapshot, ControllerState(), BACKGROUND.limits).memory
    status = status_of(snapshot, memory, BACKGROUND, Status())
    assert parse_status(status_document(status)) == status
    return status


def condition(status: Status, kind: ConditionType) -> Condition:
    return next(each for each in status.conditions if each.type is kind)


BUILT = leading(OLD, *NEW, **LATE)
CUT = leading(OLD, *NEW, generation=2)
IDLE = ABANDONED.replace(change=None)
ONE_SLOT = leading(OLD).replace(open_slots=(0,))


# --- what counts ------------------------------------------------------------------------------


def test_only_current_pairs_are_counted_while_others_are_built() -> None:
    broken = (replica("pair-1-a", "pair-1", **ended(1)), replica("pair-1-b", "pair-1", **LOST))
    status = shown(BUILDING, BUILT, *broken)
    assert [each.name for each in status.pairs] == [OLD]
    assert (status.pairs_ready, status.replicas, status.selector) == ("1/1", 1, "a=b")
    assert status.epoch.committed == 10
    for kind, holds in COUNTED.items():
        assert condition(status, kind).status is holds, kind
    assert "pair-1" not in condition(status, ConditionType.READY).message


LOST: dict[str, Any] = {"life": Life.ABSENT, "volume": None, "says": None, "node": "n"}
COUNTED = {
    ConditionType.READY: ConditionStatus.TRUE,
    ConditionType.PAIRED: ConditionStatus.TRUE,
    ConditionType.CATCHING_UP: ConditionStatus.FALSE,
    ConditionType.VULNERABLE: ConditionStatus.FALSE,
    ConditionType.CO_LOCATED: ConditionStatus.FALSE,
}


def test_new_pairs_are_counted_from_the_cut_on_and_old_ones_no_longer() -> None:
    status = shown(CUTTING, CUT, replica("pair-0-a", **ended(1)))
    assert [(each.name, each.state) for each in status.pairs] == [
        ("pair-1", PairState.PAIRED),
        ("pair-2", PairState.PAIRED),
    ]
    assert (status.replicas, status.pairs_ready, status.generation) == (2, "2/2", 2)
    assert condition(status, ConditionType.PAIRED).status is ConditionStatus.TRUE
    assert "pair-0" not in condition(status, ConditionType.READY).message


def test_members_are_listed_with_the_standing_of_their_pair() -> None:
    members = {each.name: each for each in shown(BUILDING, BUILT, spare()).members}
    assert members["pair-0-a"].standing is None
    assert members["spare-0"].standing is None
    shadow = members["pair-1-a"]
    assert (shadow.pair, shadow.role, shadow.standing, shadow.state) == (
        "pair-1",
        None,
        PairStanding.SHADOW,
        MemberState.CATCHING_UP,
    )
    members = {each.name: each for each in shown(RETIRING, CUT).members}
    muted = members["pair-0-a"]
    assert (muted.role, muted.standing) == (None, PairStanding.MUTED)
    assert members["pair-1-a"].state is MemberState.RUNNING


# --- the change -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intent", "lead", "stage", "progress"),
    [
        (PLANNED, leading(OLD), ChangeStage.PLANNED, ""),
        (BUILDING, BUILT, ChangeStage.BUILDING, "0 of 4 replicas synced"),
        (BUILDING, leading(OLD, "pair-1"), ChangeStage.BUILDING, "2 of 4 replicas synced"),
        (BUILDING, None, ChangeStage.BUILDING, ""),
        (RETIRING, CUT, ChangeStage.RETIRING, "0 of 1 replaced pairs retired"),
        (
            RETIRING,
            leading(*NEW, generation=2),
            ChangeStage.RETIRING,
            "1 of 1 replaced pairs retired",
        ),
    ],
)
def test_status_shows_stage_and_progress_of_a_change(
    intent: Intent, lead: LeadReport | None, stage: ChangeStage, progress: str
) -> None:
    change = shown(intent, lead).change
    assert change is not None
    assert (change.target, change.stage, change.progress) == (2, stage, progress)
    assert change.since == "2024-05-01T12:00:00Z"


def test_change_names_what_holds_it_up() -> None:
    assert BUILDING.change is not None
    counted = BUILDING.replace(change=BUILDING.change.replace(reason="0 of 4 replicas synced"))
    assert shown(counted, BUILT).change == shown(BUILDING, BUILT).change
    full = replica("pair-1-a", "pair-1", life=Life.STARTING, says=None, note="0/3 nodes have room")
    crashed = replica("pair-2-b", "pair-2", **ended(1))
    change = shown(BUILDING, BUILT, full, crashed).change
    assert change is not None
    assert "0/3 nodes have room" in change.reason
    assert "pair-2-b crashed" in change.reason
    assert shown(DONE, leading(*NEW, generation=2)).change is None


def test_crashes_of_a_shadow_are_counted_in_the_reason() -> None:
    snapshot = look(split(), *pair(OLD), replica("pair-1-a", "pair-1", **ended(1)), intent=BUILDING)
    memory = ControllerState(crashes={"pair-1-a": Crashes(1, 2)})
    change = status_of(snapshot, memory, BACKGROUND, Status()).change
    assert change is not None
    assert "2 times in a row" in change.reason


def test_pair_that_fails_after_the_cut_is_down_and_the_change_names_it() -> None:
    both = [replica(f"pair-1-{n}", "pair-1", **ended(-9)) for n in "ab"]
    intent = RETIRING.replace(change=RETIRING.change and RETIRING.change.replace(reason=WEAK))
    silent = PairReport("pair-1", seats("pair-1", silent=True))
    known = tuple(silent if each.name == "pair-1" else each for each in CUT.pairs)
    status = shown(intent, CUT.replace(pairs=known), *both)
    ready = condition(status, ConditionType.READY)
    assert (ready.status, ready.reason) == (ConditionStatus.FALSE, "PairDown")
    assert "pair-1" in ready.message
    for kind in (ConditionType.REBALANCING, ConditionType.PROGRESSING):
        found = condition(status, kind)
        assert (found.status, found.reason) == (ConditionStatus.TRUE, "Retiring")
        assert WEAK in found.message
    assert status.change is not None
    assert WEAK in status.change.reason


WEAK = "waits until pair-1 has all its replicas"


@pytest.mark.parametrize(
    ("intent", "lead", "rebalancing", "progressing"),
    [
        (PLANNED, leading(OLD), (False, "NoChange"), (True, "Planned")),
        (BUILDING, BUILT, (True, "Building"), (True, "Building")),
        (CUTTING, CUT, (True, "Cutting"), (True, "Cutting")),
        (RETIRING, CUT, (True, "Retiring"), (True, "Retiring")),
        (ABANDONED, leading(OLD), (False, "NoChange"), (False, "ChangeAbandoned")),
        (IDLE.replace(splits=2), leading(OLD), (False, "NoChange"), (True, "CountsChanging")),
        (IDLE.replace(slots=2), ONE_SLOT, (False, "NoChange"), (True, "CountsChanging")),
        (IDLE, ONE_SLOT, (False, "NoChange"), (False, "AsDeclared")),
    ],
)
def test_conditions_tell_what_kind_of_change_is_under_way(
    intent: Intent,
    lead: LeadReport,
    rebalancing: tuple[bool, str],
    progressing: tuple[bool, str],
) -> None:
    status = shown(intent, lead)
    for kind, (holds, reason) in (
        (ConditionType.REBALANCING, rebalancing),
        (ConditionType.PROGRESSING, progressing),
    ):
        found = condition(status, kind)
        assert (found.status, found.reason) == (ConditionStatus(str(holds)), reason), kind
        assert found.message


NOT_RUNNING: list[dict[str, Any]] = [
    {"life": Life.ABSENT, "volume": None, "says": None},
    {"life": Life.STARTING, "says": None, "note": "Unschedulable: no node has room"},
    ended(1),
]


@pytest.mark.parametrize("fields", NOT_RUNNING)
def test_splits_that_cannot_start_are_not_counted_as_running(fields: dict[str, Any]) -> None:
    status = shown(IDLE.replace(splits=2), leading(OLD), split("split-1", **fields))
    progressing = condition(status, ConditionType.PROGRESSING)
    assert (progressing.status, progressing.reason) == (ConditionStatus.TRUE, "CountsChanging")
    assert "1 of 2 splits" in progressing.message
    both = shown(IDLE.replace(splits=2), leading(OLD), split("split-1"))
    assert condition(both, ConditionType.PROGRESSING).reason == "AsDeclared"
    leaving = shown(IDLE, leading(OLD), split("split-1"))
    assert "2 splits" in condition(leaving, ConditionType.PROGRESSING).message


def test_abandoned_change_keeps_the_pipeline_ready_and_says_why() -> None:
    status = shown(ABANDONED, leading(OLD))
    assert condition(status, ConditionType.READY).status is ConditionStatus.TRUE
    said = condition(status, ConditionType.PROGRESSING).message
    assert "too large" in said
    assert "the pair that it has now" in said
    three = (*FIRST.pairs, *SECOND.pairs)
    more = splitting(ChangeStage.ABANDONED, FIRST.replace(pairs=three), reason="no room")
    assert "3 pairs" in condition(shown(more, leading(OLD)), ConditionType.PROGRESSING).message
    assert "too large" in str(describe_change(status))
    assert describe_change(shown(DONE, leading(*NEW, generation=2))) is None


def test_history_lists_the_last_changes() -> None:
    done = PastChange(2, 1, 2, BEGAN_MS, BEGAN_MS + 61_000, (KeyMove(7, "pair-1"),))
    failed = PastChange(3, 2, 4, BEGAN_MS, BEGAN_MS, abandoned="x" * 5_000)
    status = shown(DONE.replace(history=(failed, done)), leading(*NEW, generation=2))
    newest, oldest = status.history
    assert (oldest.generation, oldest.pairs_before, oldest.pairs_after) == (2, 1, 2)
    assert (oldest.began, oldest.ended) == ("2024-05-01T12:00:00Z", "2024-05-01T12:01:01Z")
    assert (oldest.moved_keys, oldest.abandoned) == (1, "")
    assert len(newest.abandoned) == MOST_REASON


# --- the decision line ------------------------------------------------------------------------


def test_decision_line_counts_current_members_and_names_shadows_that_a_step_affects() -> None:
    crashed = replica("pair-1-a", "pair-1", **ended(1))
    snapshot = look(split(), *pair(OLD), crashed, lead=BUILT, intent=BUILDING)
    assert observed_by(snapshot, ControllerState(), ()) == "3 members running"
    step = Step(Action.RESTART, "pair-1-a", "crashed", ("pair-1-a",))
    assert observed_by(snapshot, ControllerState(), [step]).startswith("shadow pair-1: pair-1-a")


def test_snapshot_without_an_intent_counts_all_pairs() -> None:
    snapshot: Snapshot = replace(look(*EVERYBODY, lead=BUILT), intent=None)
    assert snapshot.pairs() == (OLD, *NEW)

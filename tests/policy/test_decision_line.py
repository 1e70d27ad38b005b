"""The line of a reconcile: every kind of decision, and what was to be seen."""

from typing import get_args

from tests.policy.builders import NOW, ended, look, merge, replica, split

from tandem.policy.controller_state import ControllerState, PairMemory
from tandem.policy.decisions import (
    Adopt,
    AssignSpare,
    Complete,
    Decision,
    Dismiss,
    EvictPod,
    Halt,
    Kill,
    Promote,
    RecordEvent,
    Remove,
    Replace,
    Restart,
    Start,
    Wait,
    Withhold,
)
from tandem.policy.snapshot import Complaint
from tandem.policy.status.decision_line import DecisionLine, observed_by
from tandem.policy.status.steps import Action, Step, held, news, step_of, swap_step
from tandem_core.model.states import EventReason

WHY = Complaint("Broken", "it divides by zero")
EACH: tuple[Decision, ...] = (
    Start("split-0", None, "why"),
    Restart("split-0", "v", "why"),
    Replace("split-0", "v", "why"),
    Kill("split-0", "why"),
    Dismiss("split-1", "why"),
    Remove("split-1", "v", "why"),
    AssignSpare("spare-0", "pair-0-a", "v", "why"),
    Adopt("spare-0", "pair-0", "why"),
    EvictPod("pair-0-a", "v", "why"),
    Promote("pair-0", "pair-0-b", "v", "why"),
    RecordEvent(EventReason.LANE_CLOSED, "lane-0", ""),
    Halt("split-0", WHY),
    Withhold(WHY),
    Wait("split-0", "why"),
    Complete("why"),
)
WAIT = Step(Action.WAIT, "split-0", "back-off")
APPLY = Step(Action.APPLY, "Service a", "it is missing")


def test_every_decision_type_has_distinct_action_and_reason() -> None:
    assert {type(each) for each in EACH} == set(get_args(Decision))
    steps = [step_of(each) for each in EACH]
    assert len({step.action for step in steps}) == len(EACH)
    assert all(step.reason for step in steps)


def test_actions_are_always_news_and_waits_only_once() -> None:
    assert news([APPLY, WAIT], frozenset()) == (APPLY, WAIT)
    assert news([APPLY, WAIT], frozenset({APPLY, WAIT})) == (APPLY,)
    longer = Step(Action.WAIT, "split-0", "a longer back-off")
    assert news([longer], frozenset({WAIT})) == (longer,)
    assert news([], frozenset({WAIT})) == ()


def test_held_decision_waits_with_both_reasons() -> None:
    step = held(Kill("pair-0-a", "silent"), "its twin is silent too")
    assert (step.action, step.about) == (Action.WAIT, ("pair-0-a",))
    assert "silent" in step.reason
    assert "its twin is silent too" in step.reason


def test_intent_swap_lists_reasons_of_promotions() -> None:
    step = swap_step(2, 3, EACH, "spec.suspend is true")
    assert step.reason == "why; spec.suspend is true"
    assert step.about == ("pair-0",)
    assert swap_step(2, 3, []).reason


def test_reasons_are_deduplicated() -> None:
    line = DecisionLine("a", "b", (APPLY, APPLY)).and_then(WAIT)
    assert line.reason == f"{APPLY.reason}; {WAIT.reason}"
    assert line.fields().keys() == {"pipeline", "observed", "decision", "reason"}


def test_reason_that_an_event_repeats_is_written_once() -> None:
    cause = Step(Action.PROMOTE, "pair-0-b", "was killed", ("pair-0",))
    event = Step(Action.RECORD, "Failover", "pair-0 failed over: pair-0-a was killed", ("pair-0",))
    assert DecisionLine("a", "b", (cause, event)).reason == event.reason
    other = Step(Action.RESTART, "pair-1-a", "was killed", ("pair-1-a",))
    both = DecisionLine("a", "b", (other, cause, event)).reason
    assert both == f"{other.reason}; {event.reason}"


def test_observation_names_affected_or_failing_members_with_role() -> None:
    memory = ControllerState(pairs={"pair-0": PairMemory(primary="v-pair-0-a")})
    quiet = look(split(), replica(), replica("pair-0-b"), merge())
    assert "pair-0" not in observed_by(quiet, memory, [])
    dead = replica(**ended(-9))
    seen = observed_by(look(split(), dead, replica("pair-0-b"), merge()), memory, [])
    assert seen == "pair-0: primary pair-0-a was killed (signal 9), pair-0-b running"
    silent = look(split(silent_since=NOW - 2.1), replica(), merge())
    assert observed_by(silent, memory, []) == "split-0 silent for 2.1 s"
    about = observed_by(quiet, memory, [step_of(Kill("merge-0", "why"))])
    assert about == "merge-0 running"

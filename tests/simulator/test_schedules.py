"""Schedules are reproducible, and a campaign adds them up."""

import argparse
import json

import pytest

from tandem_cli import simulate
from tandem_simulator.campaign import coverage
from tandem_simulator.campaign.bugs.substitution import SeededBug
from tandem_simulator.campaign.campaign import run_campaign
from tandem_simulator.campaign.failure import explain
from tandem_simulator.campaign.seeded_bugs import PLANTS
from tandem_simulator.engine import schedule
from tandem_simulator.engine.configuration import QUIET, configure
from tandem_simulator.engine.demands import ChangePlan
from tandem_simulator.engine.schedule import run_schedule, run_with
from tandem_simulator.engine.trace import Trace
from tandem_simulator.faults.fault_generator import draw
from tandem_simulator.faults.scripts import steps_of
from tandem_simulator.oracle.violation import Violation


@pytest.mark.parametrize("number", [0, 3, 11])
def test_same_seed_gives_same_schedule(number: int) -> None:
    assert run_schedule(7, number) == run_schedule(7, number)


def test_tracing_does_not_change_outcome() -> None:
    plain = run_schedule(7, 5)
    assert run_schedule(7, 5, trace=True) == plain


def test_other_seeds_give_other_schedules() -> None:
    assert configure(1, 0) != configure(2, 0)
    assert draw(configure(1, 0)) != draw(configure(1, 1))


def test_everything_is_delivered_without_faults_and_noise() -> None:
    for number in range(8):
        quiet = configure(3, number)._replace(noise=QUIET, beyond=False)
        configuration = quiet._replace(changing=ChangePlan())
        skip = frozenset(step.number for step in steps_of(draw(configuration)))
        outcome = run_with(configuration, skip=skip)
        assert outcome.violation is None
        assert outcome.faults == 0


def test_parallel_jobs_give_same_tally() -> None:
    one = run_campaign(5, range(40))
    two = run_campaign(5, range(40), jobs=2)
    assert (one.messages, one.faults, one.coverage) == (two.messages, two.faults, two.coverage)


def test_schedules_rebuild_the_log_twice_with_late_members() -> None:
    reached = run_campaign(1, range(120)).coverage
    assert reached["header log rebuilt again"] > 0
    assert reached["late member of an older history"] > 0


def test_coverage_table_has_every_row_even_when_not_reached() -> None:
    rows = coverage.table(run_schedule(1, 0).coverage)
    assert {"take-overs", "fault: pod kill", "message lost"} <= set(rows)


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    parser = argparse.ArgumentParser()
    simulate.add_parser(parser.add_subparsers())
    code = simulate.run(parser.parse_args(["simulate", "-o", "json", *words]))
    return code, json.loads(capsys.readouterr().out)


def test_json_reports_run_without_violation(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = _json(capsys, "--schedules", "3", "--seed", "1")
    assert code == 0
    assert document["schedules"] == 3
    assert document["violations"] == 0
    assert document["seeds"] == []
    assert isinstance(document["messages"], int)
    assert isinstance(document["faults"], int)
    assert isinstance(document["coverage"], dict)


def test_json_of_planted_bug_contains_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = _json(capsys, "--plant", "blind-sink", "--schedules", "3000")
    assert code == 1
    assert document["violations"] == 1
    assert document["seeds"]
    story = document["story"]
    assert isinstance(story, str)
    assert "BROKEN" in story
    assert "--plant blind-sink" in story
    assert len(story.splitlines()) < 75


def test_plants_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    simulate.add_parser(parser.add_subparsers())
    assert simulate.run(parser.parse_args(["simulate", "--list-plants"])) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in PLANTS)


def test_explain_keeps_only_relevant_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up failure that needs one certain step: the story is told with that step alone."""
    needed = steps_of(draw(configure(1, 2)))[1].number
    real = schedule.prepare
    broken = Violation(1, "made-up", "one account and the other")

    def prepare(*args: object) -> object:
        world = real(*args)  # type: ignore[arg-type]
        skip = args[2]
        assert isinstance(skip, frozenset)
        world.stop = True
        world.violation = None if needed in skip else broken
        return world

    monkeypatch.setattr(schedule, "prepare", prepare)
    failure = explain(1, 2, broken, None)
    assert failure.violation == broken
    assert "1 of " in failure.story.splitlines()[0]


def test_plant_is_removed_after_run() -> None:
    name = next(iter(PLANTS))
    plant = PLANTS[name]
    assert isinstance(plant, SeededBug)
    before = run_schedule(1, 1)
    run_schedule(1, 1, plant=name)
    assert run_schedule(1, 1) == before


def test_tracing_collects_lines() -> None:
    trace = Trace()
    run_with(configure(1, 1), trace=trace)
    assert len(trace.lines) > 20

"""What the measurement on a cluster works out by itself."""

import math
from pathlib import Path
from typing import Any

import pytest
from bench.cluster.__main__ import plans
from bench.cluster.memory import Footprint, footprint
from bench.cluster.plain_pods import documents
from bench.cluster.runs import Memory, Outcome, joined
from bench.cluster.sides import Fault, Load
from bench.cluster.tandem_pods import document
from bench.cluster.told import TANDEM, TWO_PAIRS, data, describe
from bench.streaming.failover import Case, Failure
from bench.streaming.oracle import Verdict
from bench.streaming.pictures import draw_failover
from bench.streaming.plain_run import Launch
from tests.crds.definition import refusals
from tests.manifests.pod_security import violations

from tandem_core.model.pipeline import Refusal, parse_pipeline

LOAD = Load(keys=100, rate=200, interval_ms=1000, memory_mib=768)
RIGHT = Verdict(fed=10, delivered=5, epochs=4, missing=0, surplus=0, skipped=0)
PLAIN = Launch.STOCK.value


def outcome(side: str, fault: Fault, *gaps: float, memory: Memory | None = None) -> Outcome:
    failures = tuple(Failure(gap, gap, gap + 10, (0.0, gap)) for gap in gaps)
    case = Case(f"{side}, {fault.value}", 100, failures, (1.0, 1.1), RIGHT)
    return Outcome(side, fault, case, (30.0,), memory)


def memory_of(pipeline: float, operator: float) -> Memory:
    return Memory(
        (Footprint(int(pipeline), 1, 8), Footprint(int(pipeline / 2), 1, 8)),
        (Footprint(int(operator), 1, 1),),
    )


def test_pipeline_document_has_pairs_and_shared_storage() -> None:
    made = document(LOAD, pairs=2)
    assert refusals(made) == []
    parsed = parse_pipeline(made)
    assert not isinstance(parsed, Refusal)
    assert parsed.spec.pairs.count == 2
    assert made["spec"]["streams"][0]["source"]["files"]["path"] == "/shared/run/in"


@pytest.mark.parametrize("launch", Launch)
def test_plain_spark_runs_in_restricted_pod_with_equal_memory(launch: Launch) -> None:
    program, deployment = documents("spark:1", launch, LOAD)
    pod = deployment["spec"]["template"]["spec"]
    assert violations(pod) == []
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["memory"] == "768Mi"
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {"/shared", "/program"} < mounts
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert volumes == {mount["name"] for mount in container["volumeMounts"]}
    assert f"/program/{next(iter(program['data']))}" in container["command"]
    command = container["command"]
    assert command[command.index("--checkpoint") + 1].startswith("/shared/")
    assert command[command.index("--trigger-ms") + 1] == "1000"


def test_memory_is_summed_over_nodes_per_namespace() -> None:
    def pod(namespace: str, *working: int) -> dict[str, Any]:
        containers = [{"memory": {"workingSetBytes": each, "rssBytes": 1}} for each in working]
        return {"podRef": {"name": "x", "namespace": namespace}, "containers": containers}

    summaries = [
        {"pods": [pod("a", 10, 20), pod("b", 5)]},
        {"pods": [pod("a", 30), {"podRef": {"name": "new", "namespace": "a"}}]},
        {},
    ]
    assert footprint(summaries, "a") == Footprint(60, 3, 3)
    assert footprint(summaries, "c") == Footprint(0, 0, 0)


def test_runs_of_same_plan_are_joined() -> None:
    memory = memory_of(1, 1)
    runs = [
        outcome(TANDEM, Fault.NODE, 1.0),
        outcome(TANDEM, Fault.NODE, 3.0, memory=memory),
    ]
    found = joined(runs)
    assert found.case.gaps == [1.0, 3.0]
    assert found.first_deliveries == (30.0, 30.0)
    assert found.case.verdict.fed == 20
    assert found.memory is memory
    assert found.case.name == runs[0].case.name


def test_wrong_run_is_not_hidden_by_right_ones() -> None:
    wrong = outcome(TANDEM, Fault.NODE, 1.0)
    case = Case("x", 1, wrong.case.failures, (), Verdict(10, 5, 4, 1, 0, 0))
    found = joined([outcome(TANDEM, Fault.NODE, 1.0), Outcome(TANDEM, Fault.NODE, case, ())])
    assert not found.case.verdict.right


def test_both_sides_meet_every_fault_and_memory_is_measured_once() -> None:
    planned = list(plans(list(Fault), 5))
    ours = {plan.fault for plan in planned if plan.side == TANDEM}
    plain = {plan.fault for plan in planned if plan.side == PLAIN}
    assert ours == set(Fault)
    assert plain == set(Fault) - {Fault.LEAD_DRAIN, Fault.LEAD_NODE}
    assert [plan.side for plan in planned if plan.with_memory] == [PLAIN, TWO_PAIRS]
    assert all(plan.tries >= 1 for plan in plans(list(Fault), 1))


def test_description_states_whether_targets_are_reached() -> None:
    good = [
        outcome(TANDEM, Fault.KILL, 1.2, 1.4, 9.0),
        outcome(PLAIN, Fault.KILL, 20.0, 30.0, 25.0),
        outcome(TWO_PAIRS, Fault.KILL, 3.0, memory=memory_of(4e9, 1e8)),
    ]
    text = describe(good, 1.0)
    assert "NOT REACHED" not in text
    assert text.count("reached") == 6
    assert "9.0 s" in text
    bad = [
        outcome(TANDEM, Fault.KILL, 2.5),
        outcome(PLAIN, Fault.KILL, 20.0),
        outcome(TWO_PAIRS, Fault.KILL, 1.0, 50.1, memory=memory_of(6e9, 2e8)),
    ]
    assert describe(bad, 1.0).count("NOT REACHED") == 6


def test_two_pairs_are_judged_by_their_worst_gap_and_recovery() -> None:
    text = describe([outcome(TWO_PAIRS, Fault.KILL, 1.0, 4.1)], 1.0)
    assert "4.1 s, target at most 4.0 s: NOT REACHED" in text
    assert "whole again within 14.1 s, target 60.0 s: reached" in text


@pytest.mark.parametrize(
    ("side", "fault", "plain"),
    [
        (TANDEM, Fault.LEAD_DRAIN, Fault.DRAIN),
        (TANDEM, Fault.LEAD_NODE, Fault.NODE),
    ],
)
def test_side_without_exact_counterpart_is_compared_without_target(
    side: str, fault: Fault, plain: Fault
) -> None:
    found = [outcome(side, fault, 8.0), outcome(PLAIN, plain, 40.0)]
    text = describe(found, 1.0)
    assert "REACHED" not in text.upper()
    assert "5.0 times shorter" in text


def test_machine_readable_data_holds_every_try() -> None:
    (found,) = data([outcome(TANDEM, Fault.DRAIN, 1.0, 2.0)])
    assert found["fault"] == "DRAIN"
    assert found["worst_gap"] == 2.0
    assert math.isclose(float(str(found["median_gap"])), 1.5)


def test_every_planned_case_can_be_drawn(tmp_path: Path) -> None:
    planned = list(plans(list(Fault), 1))
    cases = [outcome(plan.side, plan.fault, 1.0).case for plan in planned]
    draw_failover(cases, [plan.side for plan in planned], 1.0, tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").stat().st_size > 0

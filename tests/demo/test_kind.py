"""What the demonstration on a cluster works out by itself."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.trial.stage import with_shared_directory
from cluster.trial.watching import ObservedChange
from demo.failures import Failure, Told, overcome
from demo.kind_scenario import events_of
from demo.kind_view import growth_bars, growth_text
from demo.report import gaps_of
from tests.crds.definition import refusals

from tandem_core.model.pipeline import Refusal, parse_pipeline

MANIFEST = Path(__file__).parents[2] / "demo" / "payments.yaml"


def event(reason: str, message: str, at: str, name: str = "demo") -> ObservedChange:
    about = {"kind": "StreamPipeline", "name": name}
    document = {"reason": reason, "message": message, "eventTime": at, "involvedObject": about}
    return ObservedChange("ADDED", document)


def test_laptop_pipeline_runs_on_cluster_with_shared_storage() -> None:
    document: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    moved = with_shared_directory(document)
    assert refusals(moved) == []
    assert not isinstance(parse_pipeline(moved), Refusal)
    spec = moved["spec"]
    assert spec["streams"][0]["source"]["files"]["path"] == "/shared/payments"
    assert spec["sinks"][0]["files"]["path"] == "/shared/totals"
    for role in ("splits", "merges"):
        (volume,) = spec[role]["template"]["volumes"]
        (mount,) = spec[role]["template"]["volumeMounts"]
        assert volume["name"] == mount["name"]
    assert "template" not in document["spec"].get("splits", {})


def test_events_are_read_with_time_and_subject() -> None:
    changes = [
        event(
            "Failover", "pair-0 failed over to b: a does not answer", "2024-05-01T12:00:00.250000Z"
        ),
        event(
            "Paired",
            "pair-1 has both replicas in sync at epoch 4",
            "2024-05-01T12:00:01.000000Z",
            "another",
        ),
    ]
    assert events_of(changes, "demo") == [Told(1714564800.25, "Failover", "pair-0")]


def test_failure_is_overcome_by_first_later_pairing() -> None:
    failures = [Failure("pair-0", "killed", 10.0), Failure("pair-1", "node lost", 20.0)]
    said: list[str] = []
    early = [
        Told(9.0, "Paired", "pair-0"),
        Told(12.5, "CatchUpStarted", "pair-0"),
        Told(15.0, "Paired", "pair-0"),
        Told(18.0, "Paired", "pair-0"),
        Told(19.0, "Paired", "pair-1"),
    ]
    assert not overcome(failures, early, said.append)
    assert [failure.paired_at for failure in failures] == [15.0, None]
    assert overcome(failures, [*early, Told(50.0, "Paired", "pair-1")], said.append)
    assert failures[1].paired_at == 50.0
    assert len(said) == 2
    assert overcome(failures, [], said.append)


def test_growth_bars_end_with_newest_second() -> None:
    bars = growth_bars([99.9, 99.5, 98.2, 20.0, 101.0], at=100.0)
    assert len(bars) == 40
    assert bars[-2:] == "▂▄"
    assert bars[:-2].strip() == ""
    assert len(growth_bars([100.0] * 9, at=100.0)) == 40


@pytest.mark.parametrize(
    ("times", "told"), [([], "no epoch"), ([1.0, 98.5], "2 epochs delivered, the last one 1.5 s")]
)
def test_growth_text_describes_recent_rate(times: list[float], told: str) -> None:
    assert growth_text(times, 100.0).startswith(told)


def test_gap_is_open_until_a_pair_has_recovered(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number:012d}.parquet").touch()
    first = min(path.stat().st_ctime for path in tmp_path.iterdir())
    whole = [Failure("pair-0", "killed", first - 2, paired_at=first - 1)]
    assert [gap.seconds for gap in gaps_of(whole, (), first - 3, tmp_path)] == [None, None]
    still_broken = [Failure("pair-0", "killed", first - 2)]
    before, during = gaps_of(still_broken, (), first - 3, tmp_path)
    assert before.seconds is None
    assert during.seconds is not None

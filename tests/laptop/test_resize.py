"""A pipeline is resized while rows flow; nothing is lost, doubled or disordered."""

from pathlib import Path

from tests.laptop.harness import Run
from tests.laptop.output import Output, longest_gap
from tests.soak.pipeline import Rows, manifest
from tests.soak.verdict import judge

BUSY_LIMIT = 240.0
"""Seconds for a change on a machine with other work; it takes about twenty without."""


def test_pairs_splits_and_merges_change_under_load(tmp_path: Path) -> None:
    rows, output = Rows(tmp_path, seed=19), Output(tmp_path / "out")
    with Run(tmp_path, manifest(pairs=1, replicas=1, interval="1s")) as run:
        with rows.flowing(run):
            run.until(run.whole, 120, "everybody runs")
            more = run.scale(BUSY_LIMIT, pairs=2, splits=3, merges=2)
            grown = names(run)
            fewer = run.scale(BUSY_LIMIT, pairs=1, splits=1, merges=1)
            shrunk = names(run)
        status = run.completes(120)
    gap = longest_gap(output.deliveries())
    print(f"more in {more:.1f} s, fewer in {fewer:.1f} s, gap {gap:.1f} s")  # noqa: T201
    verdict = judge(rows.expected(), output.table())
    assert verdict.good, verdict
    assert verdict.rows > 0
    assert {"split-0", "split-1", "split-2", "pair-1-a", "pair-2-a", "merge-3"} <= grown
    assert shrunk == {"split-0", "pair-3-a", "merge-0", "merge-1"}
    assert status["observedGeneration"] == 3
    intent = run.intent()
    assert intent is not None
    changes = [(past.pairs_before, past.pairs_after, past.abandoned) for past in intent.history]
    assert changes == [(2, 1, ""), (1, 2, "")]


def names(run: Run) -> set[str]:
    return {member["name"] for member in run.status()["members"]}

"""What holds for every commit, and how checks are run."""

from __future__ import annotations

import io

import pytest
from tests.release.__main__ import Check, run_checks, tree_checks
from tests.release.chart import declared_version
from tests.release.facts import GatheringFailed

CHECKS = {check.title: check for check in tree_checks(declared_version())}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_this_tree_passes_all_checks(check: Check) -> None:
    assert list(check.problems()) == []


def test_every_check_runs_and_failures_are_counted() -> None:
    def impossible() -> list[str]:
        raise GatheringFailed("no pip")

    wanted = [
        Check("first", lambda: ["wrong", "also wrong"]),
        Check("second", impossible),
        Check("third", list),
    ]
    out = io.StringIO()
    assert run_checks(wanted, out) == 2
    states = [line.split() for line in out.getvalue().splitlines() if line[0] != " "]
    assert states == [["failed", "first"], ["failed", "second"], ["ok", "third"]]
    for problem in ("wrong", "also wrong", "no pip"):
        assert problem in out.getvalue()

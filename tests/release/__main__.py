"""Says whether this tree can be released: `python -m tests.release`, or `make release-check`.

Prints each check with what to do about it. Exit code 1 if one failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple, TextIO

from tests.release import checks, facts
from tests.release.chart import CHART, CHART_CRD, CRD, ROOT, declared_version
from tests.release.crd_baseline import COMMAND, baseline_text

from tandem_cli.reference import reference


class Check(NamedTuple):
    """A title, and what finds the problems; none means ok."""

    title: str
    problems: Callable[[], Iterable[str]]


def main() -> int:
    """Run all checks, whichever fails."""
    version = declared_version()
    sys.stdout.write(f"release check of {version}\n")
    wanted = list(release_checks(version))
    failed = run_checks(wanted, sys.stdout)
    sys.stdout.write(
        f"\n{failed} of {len(wanted)} checks failed: {version} cannot be released from this tree\n"
        if failed
        else f"\n{version} can be released; docs/releasing.md goes on from here\n"
    )
    return int(failed > 0)


def release_checks(version: str) -> Iterator[Check]:
    """All checks: those of files alone first, and the wheel last, which takes longest."""
    yield Check("work tree is clean", lambda: checks.work_tree_problems(facts.changed_files()))
    yield Check("version is new", lambda: checks.version_problems(version, facts.earlier_tags()))
    yield from tree_checks(version)
    yield Check(
        "CHANGELOG.md has a dated section",
        lambda: checks.changelog_problems(version, (ROOT / "CHANGELOG.md").read_text()),
    )
    yield Check(
        "CRD has a baseline of this version",
        lambda: checks.baseline_problems(
            facts.stored_baseline(), baseline_text(version, (ROOT / CRD).read_text()), COMMAND
        ),
    )
    yield Check(
        "golden bytes and CRD baselines of releases are unchanged",
        lambda: checks.frozen_problems(facts.changed_frozen_files()),
    )
    wheel = cache(facts.build_wheel)
    yield Check(
        "wheel is complete and holds no tests",
        lambda: checks.wheel_problems(version, wheel(), facts.modules()),
    )
    yield Check("tandem --version agrees", lambda: checks.command_problems(version, wheel()))


def tree_checks(version: str) -> Iterator[Check]:
    """Checks that hold for every commit, also between releases."""
    yield Check(
        "chart has the version",
        lambda: checks.chart_problems(
            version, facts.read_yaml(CHART), facts.read_yaml("charts/tandem/values.yaml")
        ),
    )
    yield Check(
        "documents name no version as a tag",
        lambda: checks.document_problems(facts.documents()),
    )
    yield Check(
        "golden bytes are those of this build",
        lambda: checks.golden_problems(version, facts.stored_golden(), facts.written_golden()),
    )
    yield Check(
        "docs/reference.md is current",
        lambda: checks.generated_problems(
            (ROOT / "docs/reference.md").read_text(), reference(), "make reference"
        ),
    )
    yield Check(
        "the chart's CRD is the project's",
        lambda: checks.generated_problems(
            (ROOT / CHART_CRD).read_text(), (ROOT / CRD).read_text(), "make chart"
        ),
    )


def run_checks(wanted: Iterable[Check], out: TextIO) -> int:
    """Run checks and print what they find; the number of those that failed."""
    failed = 0
    for check in wanted:
        problems = _problems(check)
        failed += bool(problems)
        out.write(f"{'failed' if problems else 'ok':8}{check.title}\n")
        out.writelines(f"{'':8}  {problem}\n" for problem in problems)
        out.flush()
    return failed


def _problems(check: Check) -> list[str]:
    """A check whose facts cannot be gathered has failed; the others still run."""
    try:
        return list(check.problems())
    except (facts.GatheringFailed, OSError) as problem:
        return [str(problem)]


if __name__ == "__main__":
    sys.exit(main())

"""Each check passes on good facts, and fails on each fault planted into them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.release import checks
from tests.release.checks import Section, Wheel

VERSION = "0.2.0"
CHART: dict[str, object] = {"name": "tandem", "version": VERSION, "appVersion": VERSION}
VALUES: dict[str, object] = {"images": {"registry": "localhost", "tag": ""}}
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-11-18

### Added

- A thing,
  told on two lines.
- Another thing.

## [0.1.0] - 2026-10-01

### Fixed

- A fault.
"""
GOLDEN = {"entry/Header.txt": "a\n", "defaults.json": "{}\n"}
MODULES = ("tandem/__init__.py", "tandem_core/__init__.py")
WHEEL = Wheel(
    VERSION,
    (*MODULES, "tandem_runtime/spark/jars/tandem-spark.jar", "tandem-0.2.0.dist-info/METADATA"),
    f"tandem {VERSION}",
)


def test_dirty_work_tree_is_a_problem() -> None:
    assert not list(checks.work_tree_problems([]))
    assert len(list(checks.work_tree_problems(["README.md", "new.py"]))) == 1


@pytest.mark.parametrize("tags", [[], ["v0.1.0"], ["v0.1.0", "v0.1.9"], ["v0.1.10", "nightly"]])
def test_version_above_all_tags_is_accepted(tags: list[str]) -> None:
    assert not list(checks.version_problems(VERSION, tags))


@pytest.mark.parametrize(
    ("version", "tags"),
    [
        ("0.2.0", ["v0.1.0", "v0.2.0"]),
        ("0.2.0", ["v0.10.0"]),
        ("0.2", []),
        ("0.2.0rc1", []),
        ("0.02.0", []),
    ],
)
def test_malformed_or_not_increasing_version_is_refused(version: str, tags: list[str]) -> None:
    assert len(list(checks.version_problems(version, tags))) == 1


def test_chart_of_this_version_is_accepted() -> None:
    assert not list(checks.chart_problems(VERSION, CHART, VALUES))


@pytest.mark.parametrize(
    ("chart", "values"),
    [
        (CHART | {"version": "0.1.0"}, VALUES),
        (CHART | {"appVersion": "0.1.0"}, VALUES),
        ({"version": VERSION}, VALUES),
        (CHART, {"images": {"tag": "0.1.0"}}),
        (CHART, {}),
    ],
    ids=["version", "appVersion", "no appVersion", "tag", "no tag"],
)
def test_chart_of_another_version_is_refused(
    chart: dict[str, object], values: dict[str, object]
) -> None:
    assert len(list(checks.chart_problems(VERSION, chart, values))) == 1


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("make images TAG=$(make version)", 0),
        ("helm install --set images.tag=TAG", 0),
        ("FROM registry.example/tandem-spark:TAG AS tandem", 0),
        ("Kubernetes 1.34.4, PySpark 4.3.0, uv==0.5.0", 0),
        ("make images TAG=0.2.0", 1),
        ("helm upgrade --set images.tag=v0.2.0", 1),
        ("docker push registry.example/tandem-runtime:0.2.0", 1),
        ("TAG=0.1.0 tandem-operator:0.1.0", 2),
    ],
)
def test_version_literals_in_documents_are_reported(line: str, found: int) -> None:
    problems = list(checks.document_problems({"docs/a.md": f"# Title\n{line}\n"}))
    assert len(problems) == found
    assert all(problem.startswith("docs/a.md:2:") for problem in problems)


def test_valid_changelog_is_accepted() -> None:
    assert not list(checks.changelog_problems(VERSION, CHANGELOG))
    assert checks.parse_changelog(CHANGELOG) == [
        Section("Unreleased", None, 0, ()),
        Section("0.2.0", "2026-11-18", 2, ("Added",)),
        Section("0.1.0", "2026-10-01", 1, ("Fixed",)),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## [Unreleased]\n", ""),
        ("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- Late.\n"),
        ("## [0.2.0] - 2026-11-18", "## [0.3.0] - 2026-11-18"),
        ("## [0.2.0] - 2026-11-18", "## [0.2.0]"),
        ("## [0.2.0] - 2026-11-18", "## [0.2.0] - 2026-11-31"),
        ("## [0.2.0] - 2026-11-18", "## [0.2.0] - 20261118"),
        ("- A thing,\n  told on two lines.\n- Another thing.\n", ""),
        ("### Added", "### Novelties"),
    ],
    ids=[
        *("no unreleased", "left over", "no section", "no date", "no such day", "other form"),
        *("no entries", "unknown group"),
    ],
)
def test_changelog_faults_are_reported(old: str, new: str) -> None:
    assert old in CHANGELOG
    assert len(list(checks.changelog_problems(VERSION, CHANGELOG.replace(old, new)))) == 1


@pytest.mark.parametrize(
    ("stored", "problems"),
    [
        (GOLDEN, 0),
        ({}, 1),
        ({"defaults.json": "{}\n"}, 1),
        (GOLDEN | {"entry/Gone.txt": "b\n"}, 1),
        (GOLDEN | {"entry/Header.txt": "b\n"}, 1),
    ],
    ids=["same", "none", "missing", "extra", "different"],
)
def test_golden_bytes_must_match_version(stored: dict[str, str], problems: int) -> None:
    assert len(list(checks.golden_problems(VERSION, stored, GOLDEN))) == problems


@pytest.mark.parametrize(("stored", "problems"), [("a\n", 0), ("b\n", 1), ("", 1), (None, 1)])
def test_crd_baseline(stored: str | None, problems: int) -> None:
    found = list(checks.baseline_problems(stored, "a\n", "write it"))
    assert len(found) == problems
    assert all("write it" in problem for problem in found)


def test_frozen_files_of_releases() -> None:
    assert not list(checks.frozen_problems([]))
    assert len(list(checks.frozen_problems(["0.1.0/defaults.json"]))) == 1


def test_stale_generated_file_is_reported_with_command() -> None:
    assert not list(checks.generated_problems("a", "a", "make a"))
    (problem,) = checks.generated_problems("a", "b", "make a")
    assert "make a" in problem


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        ({}, 0),
        ({"version": "0.1.0"}, 1),
        ({"files": (*WHEEL.files, "tests/release/test_checks.py")}, 1),
        ({"files": (*WHEEL.files, "tandem/test_inside.py")}, 1),
        ({"files": (*WHEEL.files, "bench/__init__.py")}, 1),
        ({"files": WHEEL.files[1:]}, 1),
        ({"files": tuple(file for file in WHEEL.files if not file.endswith(".jar"))}, 1),
    ],
    ids=["good", "version", "tests", "a test", "another package", "a module less", "no jar"],
)
def test_faulty_wheel_is_reported(changed: dict[str, Any], problems: int) -> None:
    wheel = WHEEL._replace(**changed)
    assert len(list(checks.wheel_problems(VERSION, wheel, MODULES))) == problems


@pytest.mark.parametrize(
    ("command", "problems"), [("tandem 0.2.0", 0), ("tandem 0.1.0", 1), ("", 1)]
)
def test_wheel_command_must_report_version(command: str, problems: int) -> None:
    wheel = WHEEL._replace(command=command)
    assert len(list(checks.command_problems(VERSION, wheel))) == problems

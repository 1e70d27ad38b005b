"""What a tree must fulfil to be released. Pure: facts in, problems out; none means ok.

A problem is one line that names the fault and the remedy. `facts.py` gathers the facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

UNRELEASED = "Unreleased"
CHANGES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The groups that Keep a Changelog names."""

# Helm takes SemVer, pip takes PEP 440: plain numbers are both.
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_SECTION = re.compile(r"## \[([^\]]+)\](?: - (\S+))?(.*)")
_LITERAL = re.compile(r"(?i:\btag=)v?\d+\.\d+\S*|\btandem-[a-z]+:v?\d+\.\d+\S*")
_LISTED = 5

Number = tuple[int, int, int]


class Section(NamedTuple):
    """One version of the changelog."""

    name: str
    date: str | None
    entries: int
    groups: tuple[str, ...]


class Wheel(NamedTuple):
    """What a wheel says of itself, and holds."""

    version: str
    files: tuple[str, ...]
    command: str
    """What `tandem --version` prints when it runs from the wheel."""


def work_tree_problems(changed: Sequence[str]) -> Iterator[str]:
    """Every file is committed: a tag names commits, not a work tree."""
    if changed:
        yield f"commit or remove {_listed(changed)}"


def version_problems(version: str, tags: Sequence[str]) -> Iterator[str]:
    """The version is X.Y.Z, and higher than all that were released before this commit."""
    number = parse_version(version)
    if number is None:
        yield f"pyproject.toml: version {version!r} is not X.Y.Z"
        return
    released = [found for tag in tags if (found := parse_version(tag.removeprefix("v")))]
    last = max(released, default=None)
    if last is not None and number <= last:
        newest = ".".join(map(str, last))
        yield f"pyproject.toml: version {version} is not above {newest}, which is tagged: raise it"


def chart_problems(
    version: str, chart: Mapping[str, object], values: Mapping[str, object]
) -> Iterator[str]:
    """The chart has the project's version, and its images have no other tag by default."""
    for name in ("version", "appVersion"):
        if chart.get(name) != version:
            yield f"Chart.yaml: {name} is {chart.get(name)!r}, not {version!r}: make chart"
    images = values.get("images")
    tag = images.get("tag") if isinstance(images, Mapping) else None
    if tag != "":
        yield f"values.yaml: images.tag is {tag!r}: leave it empty, so that it follows appVersion"


def document_problems(documents: Mapping[str, str]) -> Iterator[str]:
    """Documents name no version as a tag: readers would copy one that is out of date."""
    for name, text in documents.items():
        for number, line in enumerate(text.splitlines(), 1):
            for literal in _LITERAL.findall(line):
                yield f"{name}:{number}: write TAG or $(make version) for the tag in {literal!r}"


def changelog_problems(version: str, changelog: str) -> Iterator[str]:
    """The version has a dated section, and nothing waits under Unreleased."""
    sections = {section.name: section for section in parse_changelog(changelog)}
    unreleased, own = sections.get(UNRELEASED), sections.get(version)
    if unreleased is None:
        yield f"add an empty section '## [{UNRELEASED}]'"
    elif unreleased.entries:
        yield f"move the {unreleased.entries} entries of {UNRELEASED} to '## [{version}]'"
    if own is None:
        yield f"add '## [{version}] - YYYY-MM-DD'"
    else:
        if not _is_date(own.date):
            yield f"date the section: '## [{version}] - YYYY-MM-DD'"
        if not own.entries:
            yield f"list what {version} changes"
    for section in sections.values():
        for group in section.groups:
            if group not in CHANGES:
                yield f"[{section.name}]: {group!r} is none of {', '.join(CHANGES)}"


def golden_problems(
    version: str, stored: Mapping[str, str], written: Mapping[str, str]
) -> Iterator[str]:
    """The golden folder of this version holds exactly what this build writes."""
    write = "read the difference after python -m tests.wire.golden"
    if not stored:
        yield f"tests/wire/golden/{version} is missing: python -m tests.wire.golden"
        return
    missing, extra = sorted(written.keys() - stored.keys()), sorted(stored.keys() - written.keys())
    differing = sorted(
        file for file in stored.keys() & written.keys() if stored[file] != written[file]
    )
    for what, files in (("missing", missing), ("not written", extra), ("different", differing)):
        if files:
            yield f"{what}: {_listed(files)}: {write}"


def baseline_problems(stored: str | None, written: str, command: str) -> Iterator[str]:
    """The CRD's baseline of this version is the CRD."""
    if stored is None:
        yield f"missing: {command}"
    elif stored != written:
        yield f"differs from the CRD: read the difference after {command}"


def frozen_problems(changed: Sequence[str]) -> Iterator[str]:
    """Golden bytes and CRD baselines of released versions are as they were tagged."""
    if changed:
        yield f"restore {_listed(changed)}: volumes and clusters hold what that release wrote"


def generated_problems(stored: str, generated: str, remedy: str) -> Iterator[str]:
    """A generated file is what its generator writes."""
    if stored != generated:
        yield f"out of date: {remedy}"


def wheel_problems(version: str, wheel: Wheel, modules: Sequence[str]) -> Iterator[str]:
    """The wheel has the version, every module, the Java module, and no test."""
    if wheel.version != version:
        yield f"its version is {wheel.version}, not {version}"
    missing = [module for module in modules if module not in wheel.files]
    if missing:
        yield f"it lacks {_listed(missing)}: see [tool.setuptools] in pyproject.toml"
    if not any(file.endswith(".jar") for file in wheel.files):
        yield "it lacks the Java module: make java"
    foreign = [file for file in wheel.files if _is_foreign(file)]
    if foreign:
        yield f"it holds {_listed(foreign)}: see [tool.setuptools] in pyproject.toml"


def command_problems(version: str, wheel: Wheel) -> Iterator[str]:
    """`tandem --version` of what is shipped names the version."""
    if wheel.command.split() != ["tandem", version]:
        yield f"tandem --version prints {wheel.command!r}, not 'tandem {version}'"


def parse_version(text: str) -> Number | None:
    """X.Y.Z as numbers; None for anything else."""
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def parse_changelog(changelog: str) -> list[Section]:
    """The sections of a changelog, in their order."""
    sections: list[Section] = []
    for line in changelog.splitlines():
        if match := _SECTION.fullmatch(line):
            sections.append(Section(match[1], match[2], 0, ()))
        elif sections and line.startswith("### "):
            groups = (*sections[-1].groups, line.removeprefix("### "))
            sections[-1] = sections[-1]._replace(groups=groups)
        elif sections and line.startswith("- "):
            sections[-1] = sections[-1]._replace(entries=sections[-1].entries + 1)
    return sections


def _is_date(text: str | None) -> bool:
    try:
        return text is not None and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_foreign(file: str) -> bool:
    """Whether a file of a wheel belongs to no package of Tandem, or is a test."""
    parts = file.split("/")
    return (
        not parts[0].startswith("tandem")
        or "tests" in parts
        or parts[-1].startswith(("test_", "conftest"))
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")

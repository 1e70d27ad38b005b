"""`tandem validate FILE`: checks a manifest as far as possible without running it."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tandem.validation.manifest_file import Manifest, TextPosition, Unparsable, load_manifests
from tandem.validation.query_file import check_query_file
from tandem.validation.unsupported import unsupported
from tandem_core.model.fields.problems import ABSENT, Absent, Fault, Problem, path_text, value_text
from tandem_core.model.pipeline import Pipeline, Refusal, parse_pipeline

VALID, INVALID, UNREADABLE = 0, 1, 2

_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class ManifestFinding:
    """A problem and its position in the file."""

    file: str
    position: TextPosition
    problem: Problem

    def as_json(self) -> dict[str, object]:
        """The finding for programs; large values are shortened to text."""
        value = self.problem.value
        plain = value is None or isinstance(value, str | int | float)
        return {
            "file": self.file,
            "line": self.position.line,
            "column": self.position.column,
            "path": path_text(self.problem.path),
            "value": None if isinstance(value, Absent) else value if plain else value_text(value),
            "fault": self.problem.fault.value,
            "expected": self.problem.expected,
        }

    def as_text(self) -> Text:
        """The finding as one line for people and for editors that follow file:line."""
        return Text.assemble(
            (f"{self.file}:{self.position.line}: ", "dim"),
            (path_text(self.problem.path), "bold"),
            ": ",
            (value_text(self.problem.value), "red"),
            " → ",
            self.problem.expected,
        )


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that cannot be read, and why."""

    file: str
    reason: str

    def as_json(self) -> dict[str, object]:
        """The error for programs, with the fields of a finding."""
        return {
            "file": self.file,
            "line": None,
            "column": None,
            "path": path_text(()),
            "value": None,
            "fault": "Unreadable",
            "expected": f"a file that can be read ({self.reason})",
        }


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `validate`."""
    parser = subparsers.add_parser(
        "validate",
        help="check manifests without starting them",
        description="Prints every problem with its line, field, value and remedy. Exit code 0: "
        "valid; 1: problems found; 2: a file cannot be read.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="YAML with StreamPipelines; - for standard input",
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")


def run(args: argparse.Namespace) -> int:
    """Check the files and print what was found."""
    found: list[ManifestFinding | Unread] = []
    checked = 0
    for name in args.files:
        text = read_text(Path(name), standard_input=name == _STANDARD_INPUT)
        if isinstance(text, Unread):
            found.append(text)
            continue
        findings, count = check_text(name, text)
        found += findings
        checked += count
    if args.output == "json":
        print(json.dumps([each.as_json() for each in found], indent=2))
    else:
        _print(found, checked)
    if any(isinstance(each, Unread) for each in found):
        return UNREADABLE
    return INVALID if found else VALID


def read_text(file: Path, *, standard_input: bool = False) -> str | Unread:
    """Read a file, or the standard input if the file is `-`."""
    try:
        if standard_input:
            return sys.stdin.buffer.read().decode("utf-8")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        return Unread(str(file), error.strerror or str(error))
    except UnicodeDecodeError:
        return Unread(str(file), "it is not UTF-8 text")


def check_text(
    file: str, text: str, more: Callable[[Pipeline], Iterable[Problem]] = lambda _: ()
) -> tuple[list[ManifestFinding], int]:
    """Find all problems of a file's text, and count its documents.

    Python queries are looked up relative to the file. `more` runs additional checks on each
    pipeline.
    """
    loaded = load_manifests(text)
    if isinstance(loaded, Unparsable):
        return [ManifestFinding(file, loaded.position, loaded.problem)], 0
    if not loaded:
        nothing = Problem((), ABSENT, Fault.MISSING, "a StreamPipeline")
        return [ManifestFinding(file, TextPosition(1, 1), nothing)], 0
    findings: list[ManifestFinding] = []
    names: set[tuple[str, str]] = set()
    for manifest in loaded:
        problems = _problems(manifest, Path(file).parent, names, more)
        findings += [
            ManifestFinding(file, manifest.position(problem.path), problem) for problem in problems
        ]
    return sorted(findings, key=lambda finding: finding.position), len(loaded)


def _problems(
    manifest: Manifest,
    directory: Path,
    names: set[tuple[str, str]],
    more: Callable[[Pipeline], Iterable[Problem]],
) -> list[Problem]:
    problems = list(manifest.problems)
    parsed = parse_pipeline(manifest.data)
    if isinstance(parsed, Refusal):
        return problems + list(parsed.problems)
    problems += [*unsupported(parsed), *check_query_file(parsed, directory), *more(parsed)]
    return problems + _repeated_name(parsed, names)


def _repeated_name(pipeline: Pipeline, names: set[tuple[str, str]]) -> list[Problem]:
    """Report a name that an earlier document of the file uses; remember this one."""
    name = (pipeline.metadata.namespace, pipeline.metadata.name)
    if name not in names:
        names.add(name)
        return []
    wanted = "a name that no other document of the file has"
    return [Problem(("metadata", "name"), pipeline.metadata.name, Fault.DUPLICATE, wanted)]


def _print(found: list[ManifestFinding | Unread], checked: int) -> None:
    console = Console(soft_wrap=True, highlight=False)
    problems = 0
    for each in found:
        if isinstance(each, Unread):
            print(f"tandem validate: cannot read {each.file}: {each.reason}", file=sys.stderr)
        else:
            console.print(each.as_text())
            problems += 1
    if problems:
        console.print(f"{problems} problem{'' if problems == 1 else 's'}")
    elif checked or not found:
        console.print(f"{checked} pipeline{'' if checked == 1 else 's'}, no problems")

"""`tandem run FILE`: runs a pipeline on this machine."""

import argparse
import contextlib
import io
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console

from tandem.local.processes.commands import assign_spare, member_command
from tandem.local.query_check import CheckFailed, Findings, check_command
from tandem.local.run import Programs, RunRefused, run_pipeline
from tandem.local.shutdown import End, EndReason
from tandem.local.store.directory import Directory, DirectoryRefused
from tandem.local.store.lookup import HOME
from tandem.local.store.paths import with_absolute_paths
from tandem.policy.snapshot import Complaint
from tandem.policy.timeouts import Timeouts
from tandem.validation.manifest_file import Unparsable, load_manifests
from tandem.validation.unsupported import unsupported_here
from tandem_cli.validate import INVALID, UNREADABLE, Unread, check_text, read_text
from tandem_core.contract.exit_codes import REFUSED
from tandem_core.model.fields.problems import Problem
from tandem_core.model.fields.quantities import Duration, parse_duration
from tandem_core.model.pipeline import Pipeline, Refusal, parse_pipeline
from tandem_core.model.states import ConditionStatus, ConditionType
from tandem_core.model.status import Condition, rejected_text

DONE, FAILED, INTERRUPTED = 0, 1, 130


def rows_delivered(pipeline: Pipeline, directory: Directory) -> int:
    """Rows in all sinks together; a sink that cannot be read counts none."""
    # Imported here: it loads Arrow, which only the end of a run needs.
    from tandem_runtime.sinks.base import SinkError  # noqa: PLC0415
    from tandem_runtime.sinks.factory import count_rows  # noqa: PLC0415

    rows = 0
    for spec in pipeline.spec.sinks:
        with contextlib.suppress(SinkError):
            rows += count_rows(spec, directory.uid(), directory.path)
    return rows


PROGRAMS = Programs(member_command, assign_spare, check_command, rows_delivered)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run a pipeline on this machine",
        description="Runs a pipeline with processes instead of pods, until it completes or is "
        "stopped. Started again with the same directory, it resumes. Exit code 0: completed, "
        "stopped or --for elapsed; 1: invalid manifest or directory, or the query could not be "
        "checked; 2: the file or the command line cannot be read; 3: the query or a sink was "
        "rejected, or the pipeline halted until its user acts; 130: members had to be killed, or "
        "interrupted before any started.",
    )
    parser.add_argument("file", metavar="FILE", help="YAML with one StreamPipeline")
    parser.add_argument("--dir", metavar="DIR", help="state directory (default: .tandem/NAME)")
    parser.add_argument(
        "--for",
        metavar="TIME",
        dest="time",
        type=duration,
        help="stop after this time, such as 60s",
    )


def run(args: argparse.Namespace) -> int:
    """Run the pipeline and print a summary."""
    file = Path(args.file)
    loaded = load(file)
    if isinstance(loaded, int):
        return loaded
    base = file.absolute().parent
    pipeline = with_absolute_paths(loaded, Path.cwd(), base)
    directory = Directory(Path(args.dir) if args.dir else HOME / pipeline.metadata.name)
    seconds = args.time.seconds if args.time is not None else None
    _print_what_can_be_printed()
    return execute(pipeline, base, directory, PROGRAMS, seconds)


def _print_what_can_be_printed() -> None:
    """Replace characters of console sinks that the terminal's encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def execute(
    pipeline: Pipeline,
    base: Path,
    directory: Directory,
    programs: Programs,
    seconds: float | None = None,
    limits: Timeouts | None = None,
) -> int:
    """Run a pipeline with these programs, print how it ended, and return the exit code."""
    try:
        end = run_pipeline(
            pipeline, base, directory, programs, Console(), seconds, _print_warnings, limits
        )
    except (DirectoryRefused, CheckFailed, OSError) as problem:
        return _fail(str(problem))
    except KeyboardInterrupt:
        return INTERRUPTED
    return _report(end, directory)


def load(
    file: Path,
    command: str = "run",
    more: Callable[[Pipeline], Iterable[Problem]] = unsupported_here,
) -> Pipeline | int:
    """Load the one pipeline of a file; print problems and return an exit code if that fails.

    `more` runs additional checks on the pipeline, by default whether it runs on one machine.
    """
    text = read_text(file)
    if isinstance(text, Unread):
        print(f"tandem {command}: cannot read {file}: {text.reason}", file=sys.stderr)
        return UNREADABLE
    findings, count = check_text(str(file), text, more)
    if findings:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        for finding in findings:
            console.print(finding.as_text())
        return INVALID
    pipelines = _pipelines(text)
    if len(pipelines) != 1:
        said = f"{file} has {count} pipelines; `tandem {command}` expects one"
        print(f"tandem {command}: {said}", file=sys.stderr)
        return INVALID
    return pipelines[0]


def _pipelines(text: str) -> list[Pipeline]:
    """The pipelines of a valid text."""
    manifests = load_manifests(text)
    documents = [] if isinstance(manifests, Unparsable) else [each.data for each in manifests]
    parsed = [parse_pipeline(document) for document in documents]
    return [pipeline for pipeline in parsed if not isinstance(pipeline, Refusal)]


def _report(end: End | RunRefused, directory: Directory) -> int:
    if isinstance(end, RunRefused):
        for complaint in end.findings.refused:
            _print_complaint("refused", complaint)
        return REFUSED
    counters = end.status.counters
    if end.complaint is not None:
        _print_complaint("halted", end.complaint)
    lost = next((each for each in end.status.conditions if _says_lost(each)), None)
    if lost is not None:
        _print_complaint("halted", Complaint(str(lost.type), lost.message))
    what = {EndReason.COMPLETED: "completed", EndReason.HALTED: "halted"}.get(end.why, "stopped")
    facts = [
        f"{counters.rows_in:,} rows in",
        f"{counters.rows_out:,} rows out",
        f"{counters.take_overs:,} failovers",
        *rejected_text(counters, str(directory.dead_letters)),
    ]
    print(f"{what}: {', '.join(facts)}")
    if end.why is EndReason.HALTED or lost is not None:
        return REFUSED
    return INTERRUPTED if end.forced else DONE


def _says_lost(condition: Condition) -> bool:
    return condition.type is ConditionType.DATA_LOST and condition.status is ConditionStatus.TRUE


def _print_warnings(findings: Findings) -> None:
    for warning in findings.warnings:
        _print_complaint("warning", warning)


def _print_complaint(kind: str, complaint: Complaint) -> None:
    print(f"tandem run: {kind}: {complaint.reason}: {complaint.message}", file=sys.stderr)
    if complaint.hint:
        print(f"  {complaint.hint}", file=sys.stderr)


def _fail(text: str) -> int:
    print(f"tandem run: {text}", file=sys.stderr)
    return FAILED


def duration(text: str) -> Duration:
    """Parse a duration."""
    try:
        parsed = parse_duration(text)
    except ValueError:
        parsed = Duration(0)
    if not parsed.milliseconds:
        wanted = "a duration above 0, such as 500ms, 10s or 1m30s"
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return parsed

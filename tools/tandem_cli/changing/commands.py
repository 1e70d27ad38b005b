"""`tandem apply`, `tandem scale`: changes of sizes and of other fields that can change."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.local.store.directory import Directory, DirectoryRefused
from tandem.local.store.manifest import COUNTS, StoredManifest
from tandem.local.store.paths import with_absolute_paths
from tandem_cli.changing.progress import ChangeOutcome, wait_for_change
from tandem_cli.changing.targets import (
    ChangeRefused,
    ChangeTarget,
    Counts,
    PendingChange,
    target_of,
)
from tandem_cli.lookup import Nowhere, add_arguments, find
from tandem_cli.plan import existing_pipeline
from tandem_cli.run import duration, load
from tandem_core.model.fields.problems import path_text, value_text
from tandem_core.model.pipeline import Pipeline, pipeline_document
from tandem_core.model.spec import Spec

ASKED, REFUSED, NOT_FOUND = 0, 1, 2

_LONGEST = "30m"
_CODES = (
    "Exit code 0: asked for, or with --wait: done; 1: refused, or with --wait: given up or not "
    "done in time; 2: "
)


@dataclass(frozen=True, slots=True)
class ChangeCommand:
    """A command that asks a pipeline for a change and may wait for it."""

    name: str
    help: str
    description: str
    declare: Callable[[argparse.ArgumentParser], None]
    ask: "Callable[[argparse.Namespace, ChangeReport], tuple[ChangeTarget, PendingChange] | int]"

    def add_parser(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Declare the command."""
        parser = subparsers.add_parser(
            self.name,
            help=self.help,
            description=f"{self.description} Looks for a pipeline that runs on this machine first, "
            "then on the cluster of the current kubeconfig; a stopped one on this machine makes "
            f"the change at its next start. {_CODES}no such pipeline or file.",
        )
        self.declare(parser)
        add_arguments(parser)
        parser.add_argument(
            "--wait",
            metavar="TIME",
            nargs="?",
            type=duration,
            const=duration(_LONGEST),
            help=f"print the progress until the change is done or given up, as in --wait 5m "
            f"({_LONGEST})",
        )

    def run(self, args: argparse.Namespace) -> int:
        """Ask for the change; return the exit code."""
        report = ChangeReport(self.name)
        try:
            found = self.ask(args, report)
            if isinstance(found, int):
                return found
            target, asked = found
            return report.end(target, asked, args.wait.seconds if args.wait is not None else None)
        except ChangeRefused as refusal:
            report.problem(str(refusal))
            return REFUSED
        except (Nowhere, DirectoryRefused, OSError) as problem:
            report.problem(str(problem))
            return NOT_FOUND


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """What a command prints."""

    command: str

    def problem(self, text: str) -> None:
        """Print why the command fails."""
        print(f"tandem {self.command}: {text}", file=sys.stderr)

    def end(self, target: ChangeTarget, asked: PendingChange, seconds: float | None) -> int:
        """Print what was asked for, and wait for it if a time is given."""
        if asked.waits:
            print(asked.waits)
            return ASKED if seconds is None else REFUSED
        if seconds is None:
            return ASKED
        found = wait_for_change(target, asked, seconds, lambda text: print(text, flush=True))
        if found.outcome is ChangeOutcome.DONE:
            print("done")
            return ASKED
        what = "given up" if found.outcome is ChangeOutcome.GIVEN_UP else "not done in time"
        self.problem(f"{what}: {found.text}")
        return REFUSED


# --- apply --------------------------------------------------------------------------------------


def _declare_apply(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="YAML with one StreamPipeline")


def _apply(
    args: argparse.Namespace, report: ChangeReport
) -> tuple[ChangeTarget, PendingChange] | int:
    file = Path(args.file)
    wanted = load(file, "apply", lambda _: ())
    if isinstance(wanted, int):
        return wanted
    place = find(wanted.metadata.name, args)
    if isinstance(place, Directory):
        wanted = with_absolute_paths(wanted, Path.cwd(), file.absolute().parent)
    existing = existing_pipeline(place, wanted)
    for change in existing.fixed:
        values = f"was {value_text(change.before)}, is {value_text(change.after)}"
        where = f"{path_text(change.path)}: {values}"
        report.problem(f"{where}: cannot change while the pipeline exists; restore it")
    if existing.fixed:
        return REFUSED
    target = target_of(place)
    before = target.pipeline()
    if not existing.free and before.spec.pairs.count == wanted.spec.pairs.count:
        print(f"{wanted.metadata.name}: no change")
        return ASKED
    asked = target.apply(wanted)
    _print_sizes(wanted.metadata.name, before.spec, wanted.spec)
    return target, asked


# --- scale --------------------------------------------------------------------------------------


def _declare_scale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sizes",
        metavar="[NAME] SIZE=N",
        nargs="+",
        help="sizes of pairs, splits or merges, as in pairs=3 splits=3 merges=2; before them the "
        "name of the pipeline, if there are several",
    )


def _scale(args: argparse.Namespace, _: ChangeReport) -> tuple[ChangeTarget, PendingChange] | int:
    name, counts = parse_sizes(args.sizes)
    target = target_of(find(name, args))
    before = target.pipeline()
    after = scaled(before, counts)
    if after == before:
        print(f"{before.metadata.name}: no change")
        return ASKED
    asked = target.scale(counts)
    _print_sizes(before.metadata.name, before.spec, after.spec)
    return target, asked


def parse_sizes(words: Sequence[str]) -> tuple[str | None, Counts]:
    """Parse `[NAME] pairs=3 …`.

    Raises:
        ChangeRefused: a word is no name or size; the message says what is expected.
    """
    names = [word for word in words if "=" not in word]
    sizes = [word.partition("=") for word in words if "=" in word]
    if len(names) > 1:
        raise ChangeRefused(f"{names[1]!r}: expected at most one name, then sizes such as pairs=3")
    if not sizes:
        raise ChangeRefused("no size is given: expected some, such as pairs=3 splits=3 merges=2")
    counts: dict[str, int] = {}
    for size, _, count in sizes:
        if size not in COUNTS:
            raise ChangeRefused(f"{size!r} is no size: expected one of {', '.join(COUNTS)}")
        if size in counts:
            raise ChangeRefused(f"{size} is given twice: expected one number")
        if not count.isascii() or not count.isdecimal():
            raise ChangeRefused(f"{size}: {count!r}: expected a whole number of at least 1")
        counts[size] = int(count)
    return (names[0] if names else None), counts


def scaled(pipeline: Pipeline, counts: Counts) -> Pipeline:
    """Return the pipeline with other sizes.

    Raises:
        ChangeRefused: a size is out of range; the message names field, value and range.
    """
    values = {path_text(COUNTS[name]): count for name, count in counts.items()}
    try:
        return StoredManifest(pipeline_document(pipeline), "").with_values(values).pipeline()
    except DirectoryRefused as problem:
        raise ChangeRefused(str(problem)) from None


def _print_sizes(name: str, before: Spec, after: Spec) -> None:
    """Print the sizes that change, or that something else does."""
    was, now = _sizes(before), _sizes(after)
    changes = [f"{size} {was[size]} → {now[size]}" for size in was if was[size] != now[size]]
    print(f"{name}: {', '.join(changes) or 'other fields change'}")


def _sizes(spec: Spec) -> Mapping[str, int]:
    return {"pairs": spec.pairs.count, "splits": spec.splits.count, "merges": spec.merges.count}


APPLY = ChangeCommand(
    "apply",
    "change a running or stopped pipeline to what a manifest says",
    "Asks for the sizes and other changeable fields of a manifest; `tandem plan` shows before what "
    "that builds and moves. A manifest that changes another field is refused.",
    _declare_apply,
    _apply,
)
SCALE = ChangeCommand(
    "scale",
    "change the number of pairs, splits or merges",
    "Changes sizes of a pipeline while it runs: state and partitions move, and results go on.",
    _declare_scale,
    _scale,
)

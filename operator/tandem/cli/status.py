"""`tandem status [NAME]`: what a pipeline on this machine is at the moment."""

import argparse
import json
import sys

from rich.console import Console

from tandem.local.directory import Directory, is_supervised, read_status
from tandem.local.find import NotFound, directory_of
from tandem.local.table import draw_members
from tandem.model.pipeline import status_document
from tandem.model.states import ConditionStatus, Phase
from tandem.model.status import Status
from tandem.policy.status import at_rest

FOUND, MISSING = 0, 1


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `status`."""
    parser = subparsers.add_parser(
        "status",
        help="show a running pipeline",
        description="Shows pairs, roles, epochs and lag. Exit code 1: there is no such pipeline.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a pipeline in .tandem")
    parser.add_argument("--dir", metavar="DIR", help="directory of the pipeline")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")


def run(args: argparse.Namespace) -> int:
    """Print the status."""
    try:
        directory = directory_of(args.name, args.dir)
    except NotFound as missing:
        print(f"tandem status: {missing}", file=sys.stderr)
        return MISSING
    status, running = current_status(directory)
    if not running and status.phase is not Phase.COMPLETED:
        print("tandem status: it does not run; this is what it was last", file=sys.stderr)
    if args.output == "json":
        print(json.dumps(status_document(status), indent=2))
    else:
        _print(directory, status)
    return FOUND


def current_status(directory: Directory) -> tuple[Status, bool]:
    """The status, and whether the pipeline runs; one that does not has no members."""
    running = is_supervised(directory)
    status = read_status(directory) or Status()
    if running:
        return status, True
    since = max((c.last_transition_time for c in status.conditions), default="")
    return at_rest(status, since), False


def _print(directory: Directory, status: Status) -> None:
    console = Console(soft_wrap=True, highlight=False)
    epoch, counters = status.epoch, status.counters
    console.print(f"{directory.path}  {status.phase}  generation {status.generation}")
    console.print(
        f"epoch {epoch.delivered} delivered, {epoch.committed} committed, {epoch.cut} cut  "
        f"lag {status.lag.epochs} epochs, {status.lag.seconds:.1f} s"
    )
    console.print(
        f"rows in {counters.rows_in:,}  out {counters.rows_out:,}  "
        f"duplicates dropped {counters.duplicates_dropped:,}  late {counters.late_dropped:,}  "
        f"take-overs {counters.take_overs:,}"
    )
    for sink in status.sinks:
        console.print(f"sink {sink.name}  {sink.delivery}  position {sink.position}")
    held = [c for c in status.conditions if c.status is ConditionStatus.TRUE]
    console.print("conditions  " + (", ".join(c.type for c in held) or "none"))
    console.print(draw_members(status))

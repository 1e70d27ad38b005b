"""`tandem status [NAME]`: the status of a pipeline, on this machine or on a cluster."""

import argparse
import json
import sys
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tandem.local.store.directory import Directory, is_supervised, read_status
from tandem.output.member_table import draw_members, titles_by_state
from tandem.policy.status.status import at_rest
from tandem.remote.observe import look_at
from tandem.remote.targets import short_names
from tandem_cli.lookup import Nowhere, Remote, add_arguments, complaints, find
from tandem_cli.run import duration
from tandem_cli.waiting import Progress, Version, wait_until_ready
from tandem_core.model.pipeline import status_document
from tandem_core.model.states import ConditionStatus, Phase
from tandem_core.model.status import Status, describe_change, rejected_text, why_not_ready

FOUND, MISSING = 0, 1
NOT_READY = 1
_WIDEST = 500
_IN_PODS = "/tandem/volume/dead-letter of the splits"


class Shown(NamedTuple):
    """What is shown of a pipeline."""

    where: str
    status: Status
    members: Table
    dead_letters: str
    """Place of the rows that did not fit their schema."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `status`."""
    parser = subparsers.add_parser(
        "status",
        help="show the status of a pipeline",
        description="Shows pairs, roles, epochs, lag and conditions. Looks for a pipeline that "
        "runs on this machine first, then on the cluster of the current kubeconfig. Exit code 1: "
        "no such pipeline, or with --wait: it is not ready.",
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="name of the pipeline; optional if there is only one",
    )
    add_arguments(parser)
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    parser.add_argument(
        "--wait",
        metavar="TIME",
        nargs="?",
        type=duration,
        const=duration("10m"),
        help="wait until the pipeline is ready and every pair has all its replicas, as in --wait "
        "90s (10m)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the status."""
    ready = args.wait is None or _wait(args)
    try:
        place = find(args.name, args)
        shown = _here(place) if isinstance(place, Directory) else _there(place)
    except Nowhere as problem:
        print(f"tandem status: {problem}", file=sys.stderr)
        return MISSING
    if args.output == "json":
        print(json.dumps(status_document(shown.status), indent=2))
    else:
        _print(shown)
    return FOUND if ready else NOT_READY


def _wait(args: argparse.Namespace) -> bool:
    """Wait until the pipeline is ready; return whether it is."""

    def say(text: str) -> None:
        print(f"tandem status: waiting: {text}", file=sys.stderr)

    seconds = args.wait.milliseconds / 1000
    return wait_until_ready(lambda: _look(args), seconds, say) is Progress.READY


def _look(args: argparse.Namespace) -> Version | None:
    """The status, if any: as last written on this machine, as observed now on a cluster."""
    try:
        place = find(args.name, args)
        if isinstance(place, Remote):
            access = place.access
            with complaints(access):
                found = look_at(access.kube, access.shell, place.resource)
            return Version(found.status, object())
    except Nowhere:
        return None
    status, running = current_status(place)
    try:
        written = place.status.stat().st_mtime_ns if running else object()
    except FileNotFoundError:
        return None
    return Version(status, written)


def _here(directory: Directory) -> Shown:
    status, running = current_status(directory)
    if not running and status.phase is not Phase.COMPLETED:
        print(
            "tandem status: the pipeline is not running; this is its last status", file=sys.stderr
        )
    members = draw_members(status, titles_by_state(status, None), {})
    return Shown(str(directory.path), status, members, str(directory.dead_letters))


def _there(remote: Remote) -> Shown:
    access = remote.access
    with complaints(access):
        look = look_at(access.kube, access.shell, remote.resource)
    targets = short_names(look.cast.pods)
    members = draw_members(look.status, look.titles(), look.epochs(), targets)
    return Shown(f"{look.cast.key} on {access.context}", look.status, members, _IN_PODS)


def current_status(directory: Directory) -> tuple[Status, bool]:
    """The status, and whether the pipeline runs; a stopped one has no members."""
    running = is_supervised(directory)
    status = read_status(directory) or Status()
    if running:
        return status, True
    since = max((c.last_transition_time for c in status.conditions), default="")
    return at_rest(status, since), False


def _print(shown: Shown) -> None:
    where, status, members, dead_letters = shown
    console = Console(soft_wrap=True, highlight=False)
    epoch, counters = status.epoch, status.counters
    console.print(f"{where}  {status.phase}  generation {status.generation}")
    console.print(
        f"epoch {epoch.delivered} delivered, {epoch.committed} committed, {epoch.cut} cut  "
        f"lag {status.lag.epochs} epochs, {status.lag.seconds:.1f} s"
    )
    console.print(
        f"rows in {counters.rows_in:,}  out {counters.rows_out:,}  "
        f"duplicates dropped {counters.duplicates_dropped:,}  late {counters.late_dropped:,}  "
        f"failovers {counters.take_overs:,}"
    )
    for rejected in rejected_text(counters, dead_letters):
        console.print(rejected, markup=False)
    for sink in status.sinks:
        console.print(f"sink {sink.name}  {sink.delivery}  position {sink.position}")
    held = [c for c in status.conditions if c.status is ConditionStatus.TRUE]
    console.print("conditions  " + (", ".join(c.type for c in held) or "none"))
    for line in filter(None, (why_not_ready(status), describe_change(status))):
        console.print(line, markup=False)
    # Truncated pod names would be useless, so long lines are not cut.
    wide = console.measure(members, options=console.options.update(max_width=_WIDEST)).maximum
    console.width = max(console.width, wide)
    console.print(members)

"""`tandem simulate`: tests the protocol under thousands of random failure schedules."""

import argparse
import json
import sys
import time
from collections.abc import Callable

from tandem_simulator.campaign import coverage
from tandem_simulator.campaign.campaign import Tally, run_campaign
from tandem_simulator.campaign.failure import FailedSchedule, explain
from tandem_simulator.campaign.seeded_bugs import PLANTS

REPORT_EVERY = 5.0
"""Seconds between two lines of progress, if the output is not a terminal."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `simulate`."""
    parser = subparsers.add_parser(
        "simulate",
        help="test the protocol under simulated failures",
        description="Runs the state machines of the protocol under random failures and checks "
        "every invariant against a ledger. The first failing schedule is shrunk and printed. Exit "
        "code 0: no violation; 1: a violation, as expected with a seeded bug; 2: the command "
        "line cannot be read.",
    )
    parser.add_argument(
        "--schedules",
        type=_positive,
        default=2000,
        metavar="N",
        help="number of schedules (default: 2000)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="S",
        help="random seed (default: 1); a seed always gives the same schedules",
    )
    parser.add_argument(
        "--plant", choices=sorted(PLANTS), metavar="BUG", help="run with a seeded bug"
    )
    parser.add_argument("--list-plants", action="store_true", help="list the seeded bugs")
    parser.add_argument("--only", type=_number, metavar="N", help="run only schedule N, from 0")
    parser.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="worker processes (default: 1)"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _positive(text: str) -> int:
    return _at_least(1, text)


def _number(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
    return value


def run(args: argparse.Namespace) -> int:
    """Run the schedules; return 1 if an invariant was violated."""
    if args.list_plants:
        for plant in PLANTS.values():
            print(f"{plant.name:<22} {plant.what}")
        return 0
    numbers = range(args.schedules) if args.only is None else range(args.only, args.only + 1)
    started = time.monotonic()
    tally = run_campaign(args.seed, numbers, args.plant, args.jobs, _progress(numbers, started))
    seconds = time.monotonic() - started
    failure = None
    if tally.failed:
        first = tally.failed[0]
        failure = explain(args.seed, first.number, first.violation, args.plant)
    if args.output == "json":
        print(json.dumps(_document(args.seed, tally, seconds, failure), indent=2))
    else:
        print(_text(args.seed, tally, seconds, failure))
    return 1 if tally.failed else 0


def _progress(numbers: range, started: float) -> Callable[[Tally], None]:
    """Return a function that prints progress: on one line of a terminal, else every few seconds."""
    terminal = sys.stderr.isatty()
    last = started

    def watch(tally: Tally) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < (0.2 if terminal else REPORT_EVERY) and tally.schedules < len(numbers):
            return
        last = now
        line = f"{tally.schedules} of {len(numbers)} schedules, {len(tally.failed)} violations"
        if terminal:
            end = "\n" if tally.schedules == len(numbers) else ""
            print(f"\r{line}", end=end, file=sys.stderr, flush=True)
        elif tally.schedules < len(numbers):
            print(line, file=sys.stderr, flush=True)

    return watch


def _document(
    seed: int, tally: Tally, seconds: float, failure: FailedSchedule | None
) -> dict[str, object]:
    document: dict[str, object] = {
        "schedules": tally.schedules,
        "violations": len(tally.failed),
        "seeds": [f"{seed}/{failed.number}" for failed in tally.failed],
        "messages": tally.messages,
        "faults": tally.faults,
        "coverage": coverage.table(tally.coverage),
        "schedulesPerMinute": round(tally.schedules / seconds * 60),
    }
    if failure is not None:
        document["story"] = failure.story
    return document


def _text(seed: int, tally: Tally, seconds: float, failure: FailedSchedule | None) -> str:
    count = max(1, tally.schedules)
    rows = coverage.table(tally.coverage)
    width = max(map(len, rows))
    lines = [f"  {row:<{width}}  {reached:>9}" for row, reached in rows.items()]
    lines.insert(0, "reached:")
    lines += [
        "",
        f"{tally.schedules} schedules with seed {seed}, {len(tally.failed)} violations; "
        f"{tally.schedules / seconds * 60:.0f} schedules a minute",
        f"{tally.messages / count:.0f} messages and {tally.faults / count:.1f} faults a schedule; "
        f"{tally.simulated / count / 1000:.1f} simulated seconds each, at most "
        f"{tally.longest_recovery / 1000:.1f} from the last fault to completion",
    ]
    if failure is not None:
        others = ", ".join(str(failed.number) for failed in tally.failed[1:20])
        lines += ["", failure.story]
        if others:
            lines += ["", f"also failing: schedules {others}"]
    return "\n".join(lines)

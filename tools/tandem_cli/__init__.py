"""The `tandem` command.

Each subcommand is a module of this package, or an object in one, that offers
`add_parser(subparsers)` and `run(args) -> int`. Commands turn arguments into calls, and results
into text and exit codes; other packages decide what is shown.
"""

import argparse
from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol

from tandem_cli import plan, run, simulate, status, validate
from tandem_cli.changing.by_hand import MOVE, ROLLBACK
from tandem_cli.changing.commands import APPLY, SCALE
from tandem_cli.signals import KILL, PAUSE, RESUME


class Command(Protocol):
    """The interface of a subcommand."""

    def add_parser(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Declare the subcommand and its arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the subcommand; return the exit code."""


COMMANDS: dict[str, Command] = {
    "run": run,
    "status": status,
    "validate": validate,
    "plan": plan,
    "apply": APPLY,
    "scale": SCALE,
    "move": MOVE,
    "rollback": ROLLBACK,
    "kill": KILL,
    "pause": PAUSE,
    "resume": RESUME,
    "simulate": simulate,
}
"""All commands by name; each declares a parser of the same name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (2: a usage error)."""
    parser = argparse.ArgumentParser(
        prog="tandem",
        description="Exactly-once streaming pipelines on Spark that fail over without a restart.",
    )
    parser.add_argument("--version", action="version", version=f"tandem {version('tandem')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        command.add_parser(subparsers)
    args = parser.parse_args(argv)
    return COMMANDS[args.command].run(args)

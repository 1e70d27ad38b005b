"""`tandem kill`, `tandem freeze`, `tandem thaw`: failures tried by hand."""

import argparse
import signal
import sys
from dataclasses import dataclass

from tandem.local.find import NotFound, directory_of, signal_member

SENT, MISSING = 0, 1


@dataclass(frozen=True, slots=True)
class SignalCommand:
    """A command that sends a signal to a member's whole process group."""

    name: str
    number: int
    help: str
    done: str

    def add_parser(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Declare the command."""
        parser = subparsers.add_parser(
            self.name,
            help=self.help,
            description=f"{self.help.capitalize()}, its JVM included. Exit code 1: nobody is that.",
        )
        parser.add_argument(
            "target",
            metavar="TARGET",
            help="pair-0/primary, pair-0/secondary, lead, or a member: pair-0-a, split-1, merge-0",
        )
        parser.add_argument("--dir", metavar="DIR", help="directory of the pipeline")

    def run(self, args: argparse.Namespace) -> int:
        """Send the signal."""
        try:
            name, pid = signal_member(directory_of(None, args.dir), args.target, self.number)
        except NotFound as missing:
            print(f"tandem {self.name}: {missing}", file=sys.stderr)
            return MISSING
        print(f"{self.done} {name} (process {pid})")
        return SENT


KILL = SignalCommand("kill", signal.SIGKILL, "kill a member as by kill -9", "killed")
FREEZE = SignalCommand("freeze", signal.SIGSTOP, "stop a member where it is", "froze")
THAW = SignalCommand("thaw", signal.SIGCONT, "let a frozen member go on", "thawed")

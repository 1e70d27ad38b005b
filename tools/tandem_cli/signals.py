"""`tandem kill`, `tandem pause`, `tandem resume`: inject failures by hand."""

import argparse
import signal
import sys
from dataclasses import dataclass

from tandem.local.store.directory import Directory
from tandem.local.store.lookup import signal_member
from tandem.remote.commands import signal_pod
from tandem.remote.observe import cast_of
from tandem.remote.targets import find_target
from tandem_cli.lookup import Nowhere, Remote, add_arguments, complaints, find

SENT, MISSING = 0, 1


@dataclass(frozen=True, slots=True)
class SignalCommand:
    """A command that sends a signal to all processes of a member."""

    name: str
    number: int
    help: str
    done: str

    def add_parser(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Declare the command."""
        what = f"{self.help[0].upper()}{self.help[1:]}"
        parser = subparsers.add_parser(
            self.name,
            help=self.help,
            description=f"{what}: all its processes, including the JVM. "
            "Looks for a pipeline that runs on this machine first, then on the cluster of the "
            "current kubeconfig. Exit code 1: no such pipeline or member.",
        )
        parser.add_argument(
            "target",
            metavar="TARGET",
            help="pair-0/primary, pair-0/secondary, split-1, merge-0, lead, or the name of a "
            "process or pod, as `tandem status` shows it",
        )
        parser.add_argument("--pipeline", metavar="NAME", help="pipeline, if there are several")
        add_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Send the signal."""
        try:
            place = find(args.pipeline, args)
            hit = self._hit(place, args.target)
        except Nowhere as problem:
            print(f"tandem {self.name}: {problem}", file=sys.stderr)
            return MISSING
        print(f"{self.done} {hit}")
        return SENT

    def _hit(self, place: Directory | Remote, target: str) -> str:
        """Send the signal; return a text that names the receivers."""
        if isinstance(place, Remote):
            with complaints(place.access):
                return self._there(place, target)
        with complaints():
            name, pid = signal_member(place, target, self.number)
            return f"{name} (process {pid})"

    def _there(self, remote: Remote, target: str) -> str:
        access = remote.access
        cast = cast_of(access.kube, remote.resource)
        pod = find_target(target, cast.pods, cast.lead.name if cast.lead is not None else None)
        processes = signal_pod(access.shell, pod, self.number)
        numbers = ", ".join(map(str, processes))
        where = f"{cast.key} on {access.context}"
        return f"{pod.name} of {where} (processes {numbers} in the pod, on node {pod.node})"


KILL = SignalCommand("kill", signal.SIGKILL, "kill a member (SIGKILL)", "killed")
PAUSE = SignalCommand("pause", signal.SIGSTOP, "pause a member (SIGSTOP)", "paused")
RESUME = SignalCommand("resume", signal.SIGCONT, "resume a paused member (SIGCONT)", "resumed")

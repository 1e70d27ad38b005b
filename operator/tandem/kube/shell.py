"""What is asked of a container by running a command in it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tandem.kube.kinds import Object


class Ran(NamedTuple):
    """A command that was started."""

    printed: str
    """Its standard output, as far as it came."""
    problem: str = ""
    """Why it did not end well, in words; empty if it did, or if nobody could tell."""


class Shell(Protocol):
    """Runs commands in pods, as the user of their container. Every call ends in bounded time."""

    def run(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the first container of a pod.

        Raises:
            NotFound: the pod is not there any more.
            Refused: that is not allowed, or the container does not run.
            Unreachable: no answer; nobody knows whether it was carried out.
        """

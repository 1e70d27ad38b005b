"""Polls the processes in a pipeline's pods, and assigns spares to pairs."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

from tandem.control.pods import Pod, Run
from tandem_core.contract.reports import MemberReport
from tandem_core.model.kubernetes_names import FLIGHT_PORT, HTTP_PORT
from tandem_core.network.member_client import Address, MemberPoller, Observation, ask


class Members(Protocol):
    """The processes of one pipeline."""

    def look(self, pods: Iterable[Pod], token: str) -> Mapping[Run, Observation]:
        """What is known of the process in each pod that can be asked.

        New pods are polled from now on; polling stops for those that are missing.
        """

    def ask(self, pod: Pod, token: str) -> MemberReport | None:
        """Ask a process for its report; None if it does not answer. Takes a second at most."""

    def assign(self, pod: Pod, token: str, pair: str) -> None:
        """Tell a spare which pair it belongs to.

        Raises:
            OSError: it was not reached, or it refuses.
        """


class Asked:
    """Implements `Members` over HTTP and Flight, at the addresses of the pods."""

    def __init__(self) -> None:
        self._watches: dict[Run, MemberPoller] = {}

    def look(self, pods: Iterable[Pod], token: str) -> Mapping[Run, Observation]:
        """What is known of the process in each pod that can be asked."""
        there = {pod.run: pod for pod in pods if pod.can_be_asked}
        for run in self._watches.keys() - there.keys():
            self._watches.pop(run).stop()
        for run in there.keys() - self._watches.keys():
            self._watches[run] = MemberPoller(there[run].name, partial(_http, there[run]), token)
        return {run: watch.look() for run, watch in self._watches.items()}

    def ask(self, pod: Pod, token: str) -> MemberReport | None:
        """Ask a process for its report."""
        return ask(_http(pod), token) if pod.can_be_asked else None

    def assign(self, pod: Pod, token: str, pair: str) -> None:
        """Tell a spare which pair it belongs to."""
        # Imported here: Flight takes memory, and few pipelines have spares.
        import pyarrow as pa  # noqa: PLC0415

        from tandem_core.network.flight_calls import ASSIGN, call  # noqa: PLC0415

        try:
            call(str(pod.address), FLIGHT_PORT, token, ASSIGN, pair.encode())
        except pa.ArrowException as problem:
            raise OSError(str(problem)) from problem


def _http(pod: Pod) -> Address:
    return Address(str(pod.address), HTTP_PORT)

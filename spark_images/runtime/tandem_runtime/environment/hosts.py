"""Hosts of a process: one machine with a supervisor, or a pod.

A host gives the process its name, its volume, its environment and its listen addresses, and acts
on its exit code.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tandem_core.contract.exit_codes import COMPLETED, REFUSED, WIPED
from tandem_core.contract.reports import REFUSAL_FILE, MemberRefusal, decode_refusal, encode_report
from tandem_core.logs.json_lines import JsonLines
from tandem_core.model.kubernetes_names import FLIGHT_PORT, HTTP_PORT
from tandem_core.model.states import MemberKind
from tandem_runtime.environment.interface import Environment
from tandem_runtime.environment.kubernetes_api import in_cluster_access
from tandem_runtime.environment.laptop import LOOPBACK, Laptop
from tandem_runtime.environment.pipeline_document import name_in
from tandem_runtime.environment.pod_identity import PodIdentity, this_pod
from tandem_runtime.environment.pod_without_api import ThroughSplits
from tandem_runtime.environment.split_pod import ClusterSplit
from tandem_runtime.volume.pod_volumes import current_volume, succeed
from tandem_runtime.volume.volume import Volume

LAST_WORDS_SECONDS = 1.5
"""How long a process of a completed pipeline still serves its state, on one machine."""

# A pod is reached from outside; all but health and metrics require the token.
EVERYWHERE = "0.0.0.0"  # noqa: S104
EVERYWHERE_IPV6 = "::"

MOST_LAST_WORDS = 4096
"""Most bytes of a container's termination message that Kubernetes passes on."""

_log = logging.getLogger(__name__)

S_co = TypeVar("S_co", bound=Environment, covariant=True)


class ListenAddress(NamedTuple):
    """Where a process serves; port 0 lets the system choose."""

    host: str
    flight: int = 0
    http: int = 0


class Host(Protocol[S_co]):
    """What a process gets from its host."""

    name: str
    listen: ListenAddress
    volume: Volume
    """Not claimed yet."""

    def log_format(self, kind: str) -> logging.Formatter:
        """How a member of this kind formats its log."""

    def environment(self) -> S_co:
        """Open the environment, which is watched from now on."""

    def rest(self, code: int) -> int:
        """Wait as long as a process that has ended for good should stay; returns the exit code."""

    def leave(self, code: int) -> int:
        """Act on the exit code of the ending process, and return it."""


class LaptopHost:
    """A directory below the pipeline's. The supervisor acts on exit codes."""

    listen = ListenAddress(LOOPBACK)

    def __init__(self, directory: Path, name: str, volume: str) -> None:
        self.name = name
        self.volume = Volume(directory / "volumes" / volume)
        self._directory = directory

    def log_format(self, kind: str) -> logging.Formatter:  # noqa: ARG002 - its name says it
        """Text: people read the files in the pipeline's directory."""
        return logging.Formatter(f"%(asctime)s {self.name} %(levelname)s %(name)s: %(message)s")

    def environment(self) -> Laptop:
        """The pipeline's directory."""
        return Laptop(self._directory, self.volume.id)

    def rest(self, code: int) -> int:
        """Stay a moment if the pipeline is completed, so that observers see the final state."""
        if code == COMPLETED:
            time.sleep(LAST_WORDS_SECONDS)
        return code

    def leave(self, code: int) -> int:
        """Do nothing: the supervisor acts on the exit code."""
        return code


class PodHost(Generic[S_co]):
    """A container, which Kubernetes restarts with back-off whenever it ends."""

    def __init__(self, pod: PodIdentity, look: Callable[[PodIdentity, str], S_co]) -> None:
        """`look` opens the environment of the process on a volume."""
        self.name = pod.name
        self.listen = ListenAddress(all_addresses(pod.host), FLIGHT_PORT, HTTP_PORT)
        self.volume = Volume(current_volume(pod.home, pod.uid))
        self._pod = pod
        self._look = look

    def log_format(self, kind: str) -> logging.Formatter:
        """JSON lines as the operator's, each with the pipeline, this member and its volume."""
        name = name_in(self._pod.document)
        pipeline = {} if name is None else {"pipeline": f"{self._pod.namespace}/{name}"}
        return JsonLines(
            lambda: {
                **pipeline,
                "member": self.name,
                "kind": kind,
                "volume": self.volume.id,
                "incarnation": self.volume.incarnation,
            }
        )

    def environment(self) -> S_co:
        """The environment as the API server or the splits report it."""
        return self._look(self._pod, self.volume.id)

    def rest(self, code: int) -> int:  # noqa: ARG002 - Kubernetes would restart after any
        """Stay until a signal ends the process: a restart would be pointless."""
        asked = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.set())
        asked.wait()
        return 0

    def leave(self, code: int) -> int:
        """Report a refusal in the termination log; restart at once if the volume is discarded."""
        if code == REFUSED:
            self._leave_word()
        elif code == WIPED:
            successor = succeed(self.volume.directory)
            _log.info("continues as %s", successor.name)
            logging.shutdown()
            sys.stdout.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
        return code

    def _leave_word(self) -> None:
        refusal = self.volume.directory / REFUSAL_FILE
        if refusal.exists() and self._pod.termination_log.exists():
            words = termination_message(decode_refusal(refusal.read_bytes()))
            self._pod.termination_log.write_text(words, encoding="utf-8")


def all_addresses(host: str) -> str:
    """The wildcard address, IPv4 or IPv6 as the pod's own address."""
    return EVERYWHERE_IPV6 if ":" in host else EVERYWHERE


def termination_message(refusal: MemberRefusal) -> str:
    """A refusal as a termination message; fields are cut so that it is passed on complete."""
    while len(text := encode_report(refusal)) > MOST_LAST_WORDS:
        said = {name: getattr(refusal, name) for name in refusal.__struct_fields__}
        longest = max(said, key=lambda name: len(said[name]))
        refusal = refusal.replace(**{longest: said[longest][: len(said[longest]) * 9 // 10]})
    return text.decode()


def host_of(kind: str, arguments: argparse.Namespace) -> Host[Any]:
    """The host that the arguments name."""
    if not arguments.in_cluster:
        directory = Path(arguments.dir).absolute()
        return LaptopHost(directory, arguments.name, arguments.volume)
    return PodHost(this_pod(), _as_split if kind == MemberKind.SPLIT else _as_other)


def _as_split(pod: PodIdentity, volume: str) -> ClusterSplit:
    return ClusterSplit(in_cluster_access(pod.root, os.environ), pod, volume)


def _as_other(pod: PodIdentity, _: str) -> ThroughSplits:
    return ThroughSplits(pod)

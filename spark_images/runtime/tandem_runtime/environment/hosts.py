"""Where a process lives: on one machine under a supervisor, or in a pod.

A host gives the process its name, its volume and its environment, says where it serves, and
does what has to be done when it ends.
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
from tandem_core.model.kubernetes_names import FLIGHT_PORT, HTTP_PORT
from tandem_core.model.states import MemberKind
from tandem_runtime.environment.interface import Environment
from tandem_runtime.environment.kubernetes_api import in_cluster_access
from tandem_runtime.environment.laptop import LOOPBACK, Laptop
from tandem_runtime.environment.pod_identity import PodIdentity, this_pod
from tandem_runtime.environment.pod_without_api import ThroughSplits
from tandem_runtime.environment.split_pod import ClusterSplit
from tandem_runtime.volume.pod_volumes import current_volume, succeed
from tandem_runtime.volume.volume import Volume

LAST_WORDS_SECONDS = 1.5
"""How long a process of a completed pipeline can still be asked for its state on one machine."""

# A pod is reached from outside; what counts wants the token.
EVERYWHERE = "0.0.0.0"  # noqa: S104
EVERYWHERE_IPV6 = "::"

MOST_LAST_WORDS = 4096
"""Bytes that Kubernetes passes on of what a container leaves behind."""

_log = logging.getLogger(__name__)

S_co = TypeVar("S_co", bound=Environment, covariant=True)


class ListenAddress(NamedTuple):
    """Where a process serves; port 0 lets the system choose."""

    host: str
    flight: int = 0
    http: int = 0


class Host(Protocol[S_co]):
    """What a program gets from where it lives."""

    name: str
    listen: ListenAddress
    volume: Volume
    """Not claimed yet."""

    def environment(self) -> S_co:
        """What is around; looked at from now on."""

    def rest(self) -> int:
        """Everything is delivered: what to wait for, and the exit code then."""

    def leave(self, code: int) -> int:
        """The process ends: see to what follows from its exit code, which is given back."""


class LaptopHost:
    """A place below the pipeline's directory. The supervisor sees to what follows."""

    listen = ListenAddress(LOOPBACK)

    def __init__(self, directory: Path, name: str, volume: str) -> None:
        self.name = name
        self.volume = Volume(directory / "volumes" / volume)
        self._directory = directory

    def environment(self) -> Laptop:
        """The directory."""
        return Laptop(self._directory, self.volume.id)

    def rest(self) -> int:
        """Whoever watches shall see it before everybody is gone."""
        time.sleep(LAST_WORDS_SECONDS)
        return COMPLETED

    def leave(self, code: int) -> int:
        """Nothing is left to do here."""
        return code


class PodHost(Generic[S_co]):
    """A container that is started again whenever it ends, by and by ever later."""

    def __init__(self, pod: PodIdentity, look: Callable[[PodIdentity, str], S_co]) -> None:
        """`look` gives the environment of the process on a volume."""
        self.name = pod.name
        self.listen = ListenAddress(all_addresses(pod.host), FLIGHT_PORT, HTTP_PORT)
        self.volume = Volume(current_volume(pod.home, pod.uid))
        self._pod = pod
        self._look = look

    def environment(self) -> S_co:
        """What the API server knows, or the splits."""
        return self._look(self._pod, self.volume.id)

    def rest(self) -> int:
        """Being started again would be pointless: stay until asked to go."""
        asked = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.set())
        asked.wait()
        return 0

    def leave(self, code: int) -> int:
        """Leave word why this was refused; go on at once where the volume was of no use."""
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
    """All addresses of a pod, of the kind that its own one is."""
    return EVERYWHERE_IPV6 if ":" in host else EVERYWHERE


def termination_message(refusal: MemberRefusal) -> str:
    """A refusal as a pod tells it, cut so that it is passed on whole."""
    while len(text := encode_report(refusal)) > MOST_LAST_WORDS:
        said = {name: getattr(refusal, name) for name in refusal.__struct_fields__}
        longest = max(said, key=lambda name: len(said[name]))
        refusal = refusal.replace(**{longest: said[longest][: len(said[longest]) * 9 // 10]})
    return text.decode()


def host_of(kind: str, arguments: argparse.Namespace) -> Host[Any]:
    """Where the arguments say that a process lives."""
    if not arguments.in_cluster:
        directory = Path(arguments.dir).absolute()
        return LaptopHost(directory, arguments.name, arguments.volume)
    return PodHost(this_pod(), _as_split if kind == MemberKind.SPLIT else _as_other)


def _as_split(pod: PodIdentity, volume: str) -> ClusterSplit:
    return ClusterSplit(in_cluster_access(pod.root, os.environ), pod, volume)


def _as_other(pod: PodIdentity, _: str) -> ThroughSplits:
    return ThroughSplits(pod)

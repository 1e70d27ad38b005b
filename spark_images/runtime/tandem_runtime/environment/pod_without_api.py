"""The environment of a replica or a merge on a cluster: whatever any split says.

These pods have no access to the API server. A thread asks the splits, which the headless Service
finds, one after the other until one answers. What was known stays known while nobody does.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping

import pyarrow as pa

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.records import encode
from tandem_core.contract.volume_ids import pod_volume
from tandem_core.model.kubernetes_names import FLIGHT_PORT, splits_service
from tandem_core.network.flight_calls import call
from tandem_runtime.environment.pod_base import AROUND, Address, PeersAnswer, PodEnvironment
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.protocol.bounded_map import BoundedMap
from tandem_runtime.protocol.types import Member

ASK_SECONDS = 0.5
"""How often a split is asked."""

NEED_SECONDS = 0.1
"""How soon it is asked again when somebody looks for a pod that is not known."""

PATIENCE_SECONDS = 2.0
"""How long an answer may take."""

_log = logging.getLogger(__name__)


def resolved(service: str, port: int = FLIGHT_PORT) -> list[Address]:
    """Where the pods of a headless Service are; nowhere if the name cannot be resolved now."""
    try:
        found = socket.getaddrinfo(service, port, type=socket.SOCK_STREAM)
    except OSError as problem:
        _log.debug("%s cannot be resolved: %s", service, problem)
        return []
    return sorted({(str(entry[4][0]), port) for entry in found})


class ThroughSplits(PodEnvironment):
    """A pipeline as its splits describe it."""

    def __init__(
        self, pod: PodIdentity, resolve: Callable[[str], list[Address]] = resolved
    ) -> None:
        super().__init__(pod)
        self._resolve = resolve
        self._service = splits_service(self.pipeline.metadata.name)
        self._members: tuple[Member, ...] = ()
        self._addresses: BoundedMap[Address] = BoundedMap()
        """By pod; also of pods that the last answer did not know."""
        self._intent: Intent | None = None
        self._answering: Address | None = None
        """The split that answered last."""
        self._needed = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="around", daemon=True).start()

    def await_known(self) -> None:
        """Nothing has to be known: what is not is asked for again and again."""

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """Splits know better."""
        return {}

    # --- what was said --------------------------------------------------------------------------

    def address_of_pod(self, pod: str) -> Address | None:
        """Where a pod is, or was last."""
        address = self._addresses.get(pod)
        if address is None:
            self._needed.set()
        return address

    def admits(self, volume: str) -> bool:  # noqa: ARG002 - the port's
        """Everybody with the token is listened to; what counts the lead decides."""
        return True

    def splits(self) -> tuple[Member, ...]:
        """The splits, each on the newest volume that was heard of."""
        return tuple(
            member.replace(volume=self.newest.of(pod).id)
            for member in self._members
            if (pod := _pod(member)) is not None
        )

    def intent(self) -> Intent | None:
        """The newest intent that a split has told of."""
        return self._intent

    def functions(self) -> tuple[Function, ...]:
        """Only splits route rows."""
        return ()

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:  # noqa: ARG002 - the port's
        """Nobody tells. A pod that was deleted is ended by its node, and not heard until then."""
        return frozenset()

    # --- asking ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.wait(NEED_SECONDS):
            self._look()
            self._needed.wait(ASK_SECONDS - NEED_SECONDS)
            self._needed.clear()

    def _look(self) -> None:
        """Ask until a split answers that the API server talks to; else any answer has to do."""
        fallback: PeersAnswer | None = None
        for address in self._to_ask():
            around = self._asked(address)
            if around is not None and around.in_touch:
                self._answering = address
                self._take(around)
                return
            fallback = fallback or around
        if fallback is not None:
            self._take(fallback)

    def _to_ask(self) -> list[Address]:
        """Everywhere that a split may be, beginning with the one that answered last."""
        known = [self._addresses.get(pod) for member in self._members if (pod := _pod(member))]
        found = {*self._resolve(self._service), *(address for address in known if address)}
        return sorted(found, key=lambda address: (address != self._answering, address))

    def _asked(self, address: Address) -> PeersAnswer | None:
        version = self._intent.version if self._intent is not None else 0
        try:
            form = call(*address, self.token, AROUND, encode(version), PATIENCE_SECONDS)
            return PeersAnswer.from_bytes(form)
        except (pa.ArrowException, OSError, ValueError, TypeError) as problem:
            _log.debug("%s:%d did not report its peers: %s", *address, problem)
            return None

    def _take(self, around: PeersAnswer) -> None:
        for pod, address in around.addresses.items():
            if self._addresses.get(pod) != address:
                self._addresses[pod] = address
        if around.intent is not None:
            self._intent = around.intent
        for member in around.splits:
            self.met(member.volume)
        self._members = around.splits


def _pod(member: Member) -> str | None:
    parts = pod_volume(member.volume)
    return parts.pod if parts is not None else None

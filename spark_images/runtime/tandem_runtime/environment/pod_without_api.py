"""The environment of a replica or a merge on a cluster, as the splits report it.

These pods have no access to the API server. A thread asks the splits, found through the headless
Service, one after the other until one answers. While none does, the last answer stays valid.
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
from tandem_runtime.environment.pod_base import (
    AROUND,
    FUNCTION,
    Address,
    PeersAnswer,
    PodEnvironment,
)
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.protocol.bounded_map import BoundedMap
from tandem_runtime.protocol.types import Member

ASK_SECONDS = 0.5
"""How often a split is asked."""

NEED_SECONDS = 0.1
"""Least pause between two rounds; used when the address of an unknown pod is wanted."""

PATIENCE_SECONDS = 2.0
"""How long an answer may take."""

_log = logging.getLogger(__name__)


def resolved(service: str, port: int = FLIGHT_PORT) -> list[Address]:
    """The addresses of a headless Service's pods; none if the name cannot be resolved now."""
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
        """By pod; includes pods that the last answer did not list."""
        self._intent: Intent | None = None
        self._functions: dict[str, bytes] = {}
        self._answering: Address | None = None
        """The split that answered last."""
        self._needed = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="around", daemon=True).start()

    def await_known(self) -> None:
        """Return at once: whatever is unknown is polled for."""

    def close(self) -> None:
        """Stop polling."""
        self._closed.set()

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """None: splits answer such questions."""
        return {}

    # --- answers of splits ----------------------------------------------------------------------

    def address_of_pod(self, pod: str) -> Address | None:
        """The last known address of a pod."""
        address = self._addresses.get(pod)
        if address is None:
            self._needed.set()
        return address

    def admits(self, volume: str) -> bool:  # noqa: ARG002 - the port's
        """Always true: the token was checked, and the lead decides which messages count."""
        return True

    def splits(self) -> tuple[Member, ...]:
        """The splits, each on its newest known volume."""
        return tuple(
            member.replace(volume=self.newest.of(pod).id)
            for member in self._members
            if (pod := _pod(member)) is not None
        )

    def intent(self) -> Intent | None:
        """The newest intent that a split has reported."""
        return self._intent

    def functions(self) -> tuple[Function, ...]:
        """The routing functions that the intent names, as far as a split has told them."""
        return tuple(Function(digest, form) for digest, form in self._functions.items())

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:  # noqa: ARG002 - the port's
        """None: not reported. A deleted pod is ended by its node; splits ignore it until then."""
        return frozenset()

    # --- asking ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.wait(NEED_SECONDS):
            self._look()
            self._needed.wait(ASK_SECONDS - NEED_SECONDS)
            self._needed.clear()

    def _look(self) -> None:
        """Take the answer of a split in touch with the API server, else the first answer."""
        fallback: tuple[PeersAnswer, Address] | None = None
        for address in self._to_ask():
            around = self._asked(address)
            if around is not None and around.in_touch:
                self._answering = address
                self._take(around, address)
                return
            if around is not None:
                fallback = fallback or (around, address)
        if fallback is not None:
            self._take(*fallback)

    def _to_ask(self) -> list[Address]:
        """All addresses where a split may be, beginning with the one that answered last."""
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

    def _ask_for_functions(self, split: Address) -> None:
        """Ask for what the intent names and is not known here; forget all others."""
        named = self._intent.functions_named() if self._intent is not None else frozenset()
        known = {digest: form for digest, form in self._functions.items() if digest in named}
        for digest in named.difference(known):
            try:
                known[digest] = call(
                    *split, self.token, FUNCTION, digest.encode(), PATIENCE_SECONDS
                )
            except (pa.ArrowException, OSError) as problem:
                _log.debug("%s:%d did not tell function %s: %s", *split, digest, problem)
        self._functions = known

    def _take(self, around: PeersAnswer, split: Address) -> None:
        for pod, address in around.addresses.items():
            if self._addresses.get(pod) != address:
                self._addresses[pod] = address
        if around.intent is not None:
            self._intent = around.intent
        self._ask_for_functions(split)
        for member in around.splits:
            self.met(member.volume)
        self._members = around.splits


def _pod(member: Member) -> str | None:
    parts = pod_volume(member.volume)
    return parts.pod if parts is not None else None

"""The environment of a split on a cluster: the API server.

Threads watch the API server; calls here only read their caches.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Callable, Mapping

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.intent_text import functions_among, read_intent_text
from tandem_core.contract.records import decode
from tandem_core.contract.volume_ids import pod_volume
from tandem_core.model.kubernetes_names import FLIGHT_PORT, INTENT_KEY, intent_name
from tandem_core.model.states import MemberKind
from tandem_runtime.environment.kubernetes_api import Access, Object, namespace_path
from tandem_runtime.environment.lease_register import LeaseRegister
from tandem_runtime.environment.pod_base import (
    AROUND,
    FUNCTION,
    Address,
    PeersAnswer,
    PodEnvironment,
)
from tandem_runtime.environment.pod_directory import PodDirectory
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.environment.watch_cache import Extent, WatchCache
from tandem_runtime.protocol.types import Member, RegisterState

IN_TOUCH_SECONDS = 15.0
"""For how long after its last answer the API server's data count as fresh. The register is read
from it every few seconds."""

_log = logging.getLogger(__name__)


class ClusterSplit(PodEnvironment):
    """A split's view of its pipeline."""

    def __init__(
        self, access: Access, pod: PodIdentity, volume: str, port: int = FLIGHT_PORT
    ) -> None:
        """`port` is where every pod receives streams."""
        super().__init__(pod)
        name = self.pipeline.metadata.name
        self._access = access
        self._port = port
        self._pods = PodDirectory(access, pod.namespace, name)
        self._register = LeaseRegister(access, pod, name)
        self._intent: Intent | None = None
        self._functions: tuple[Function, ...] = ()
        self._intent_gone = False
        self._intent_known = threading.Event()
        self._asked_before = False
        maps = namespace_path("v1", pod.namespace, "configmaps")
        single = Extent.single(maps, intent_name(name))
        self._mirror = WatchCache(access, single, self._intent_came)
        self.met(volume)

    def await_known(self) -> None:
        """Wait until the pods, this one among them, and the intent have been read."""
        self._pods.await_known(self.pod.uid)
        self._intent_known.wait()

    def close(self) -> None:
        """Stop watching."""
        self._pods.close()
        self._mirror.close()
        self._register.close()

    # --- questions of other pods ----------------------------------------------------------------

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """The actions for pods without access to the API server."""
        return {AROUND: self._around, FUNCTION: self._function}

    def _function(self, digest: bytes) -> bytes:
        """Return a routing function.

        Raises:
            LookupError: it is not known here.
        """
        for function in self._functions:
            if function.digest.encode() == digest:
                return function.form
        raise LookupError(f"routing function {digest.decode()} is not known here")

    def _around(self, known: bytes) -> bytes:
        """Report the environment; the question names the version of the intent that the peer has.

        Raises:
            RuntimeError: nothing is known here yet.
        """
        if not self._pods.known:
            raise RuntimeError("nothing is known here yet")
        intent = self._intent
        newer = intent is not None and intent.version > decode(known, int)
        return PeersAnswer(
            in_touch=time.monotonic() - self._access.answered < IN_TOUCH_SECONDS,
            splits=self.splits(),
            addresses={pod.uid: (pod.host, self._port) for pod in self._pods.all() if pod.host},
            intent=intent if newer else None,
        ).to_bytes()

    # --- peers --------------------------------------------------------------------------------

    def address_of_pod(self, pod: str) -> Address | None:
        """The address at which an existing pod receives streams, once it has one."""
        found = self._pods.get(pod)
        return (found.host, self._port) if found is not None and found.host is not None else None

    def admits(self, volume: str) -> bool:
        """Whether the volume is the newest one of a known pod."""
        parts = pod_volume(volume)
        if parts is None or self._pods.get(parts.pod) is None:
            return False
        self.met(volume)
        return not self.newest.outdates(parts)

    def splits(self) -> tuple[Member, ...]:
        """The splits that have an address."""
        return tuple(
            sorted(
                Member(pod.name, self.newest.of(pod.uid).id, pod.node)
                for pod in self._pods.all()
                if pod.kind == MemberKind.SPLIT and pod.host is not None
            )
        )

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:
        """Those of these volumes whose pod is gone, or is on a later volume."""
        parts = {volume: pod_volume(volume) for volume in volumes}
        known = {volume: part for volume, part in parts.items() if part is not None}
        look = self._pods.gone if self._asked_before else self._pods.missing
        self._asked_before = True
        gone = look({part.pod for part in known.values()})
        return frozenset(
            volume
            for volume, part in known.items()
            if part.pod in gone or self.newest.outdates(part)
        )

    # --- intent and register --------------------------------------------------------------------

    def intent(self) -> Intent | None:
        """The newest intent that was seen."""
        return self._intent

    def functions(self) -> tuple[Function, ...]:
        """The routing functions in the intent's ConfigMap."""
        return self._functions

    def _intent_came(self, maps: Mapping[str, Object]) -> None:
        for each in maps.values():
            self._functions = _functions_in(each) or self._functions
            found = _intent_in(each)
            if found is not None and (self._intent is None or found.version > self._intent.version):
                self._intent = found
        self._intent_gone = self._intent is not None and not maps
        self._intent_known.set()

    def abandoned(self) -> bool:
        """Whether the intent, deleted with the pipeline, is gone, and all pods are terminating."""
        return self._intent_gone and all(pod.going for pod in self._pods.all())

    def read_register(self) -> RegisterState:
        """The value in the Lease."""
        return self._register.read_register()

    def swap_register(self, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
        """Change the Lease, if it still has the expected version."""
        return self._register.swap_register(expected, place)


def _intent_in(document: Object) -> Intent | None:
    try:
        return read_intent_text(document.get("data", {})[INTENT_KEY])
    except (KeyError, ValueError) as problem:
        _log.warning("the intent cannot be read: %r", problem)
        return None


def _functions_in(document: Object) -> tuple[Function, ...]:
    forms = document.get("binaryData") or {}
    return functions_among({name: base64.b64decode(form) for name, form in forms.items()})

"""The pods of a pipeline, as the API server knows them, and which of them are gone for good.

A pod exists until it is deleted and removed by its node, or until it has ended and will not be
restarted. A pod that is missing in the cache need not be gone: the cache may lag. So a pod is gone
when the watch saw it go, or when it is missing in a list that was requested after its first
mention. From then on its messages are ignored, but it is reported as gone only `QUIET_SECONDS`
later: a process may outlive its pod, and by then the other splits ignore it too.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tandem_core.model.kubernetes_names import KIND_LABEL, PIPELINE_LABEL
from tandem_runtime.environment.kubernetes_api import (
    Access,
    ApiRefused,
    ApiSilent,
    Object,
    Session,
    namespace_path,
)
from tandem_runtime.environment.watch_cache import PAUSE_SECONDS, Extent, WatchCache
from tandem_runtime.protocol.bounded_map import BoundedMap

_OVER = frozenset({"Failed", "Succeeded"})
"""Phases of pods whose containers are not restarted any more."""

QUIET_SECONDS = 1.0
"""Within this time every split has seen a change that one split has seen."""

_log = logging.getLogger(__name__)


class PeerPod(NamedTuple):
    """A pod as its peers see it."""

    uid: str
    name: str
    kind: str
    node: str
    host: str | None
    """Its address, once it has one."""
    going: bool
    """Whether it has been deleted and has not ended yet."""


def pod_of(document: Object) -> PeerPod | None:
    """Parse a pod's document; None if the pod has ended."""
    metadata, status = document["metadata"], document.get("status", {})
    if status.get("phase") in _OVER:
        return None
    return PeerPod(
        uid=metadata["uid"],
        name=metadata["name"],
        kind=metadata.get("labels", {}).get(KIND_LABEL, ""),
        node=document.get("spec", {}).get("nodeName", ""),
        host=status.get("podIP"),
        going=metadata.get("deletionTimestamp") is not None,
    )


class PodDirectory:
    """The pods with a pipeline's label. Safe to use from any thread."""

    def __init__(self, access: Access, namespace: str, pipeline: str) -> None:
        path = namespace_path("v1", namespace, "pods")
        self._extent = Extent.labelled(path, PIPELINE_LABEL, pipeline)
        self._session = Session(access)
        self._lock = threading.Condition()
        self.known = False
        """Whether the pods have been read."""
        self._there: dict[str, PeerPod] = {}
        self._gone: BoundedMap[float] = BoundedMap()
        """When each lost pod may be reported as gone, by the monotonic clock."""
        self._suspects: set[str] = set()
        """Pods that were asked about and are missing in the cache."""
        self._closed = False
        self._mirror = WatchCache(access, self._extent, self._changed)
        threading.Thread(target=self._confirm, name="pods gone", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._mirror.close()
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def await_known(self, pod: str) -> None:
        """Wait until the pods are known, this one among them."""
        with self._lock:
            self._lock.wait_for(lambda: self.known and pod in self._there)

    def get(self, uid: str) -> PeerPod | None:
        """The pod with this uid, if it exists."""
        with self._lock:
            return self._there.get(uid)

    def all(self) -> list[PeerPod]:
        """The pods that exist."""
        with self._lock:
            return list(self._there.values())

    def missing(self, uids: Iterable[str]) -> frozenset[str]:
        """Those of these pods that do not exist; all were known before the cache was first filled.

        They are gone: the cache is newer than they are.
        """
        with self._lock:
            missing = frozenset(uids) - self._there.keys()
            for uid in missing:
                self._gone[uid] = time.monotonic()
            return missing

    def gone(self, uids: Iterable[str]) -> frozenset[str]:
        """Those of these pods that are known to be gone; asks the server about doubtful ones."""
        with self._lock:
            asked = frozenset(uids) - self._there.keys()
            self._suspects |= asked - self._gone.keys()
            self._lock.notify_all()
            now = time.monotonic()
            return frozenset(uid for uid in asked if self._gone.get(uid, math.inf) <= now)

    def _note_gone(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._gone[uid] = time.monotonic() + QUIET_SECONDS

    # --- in the cache's thread -----------------------------------------------------------------

    def _changed(self, documents: Mapping[str, Object]) -> None:
        there = _by_uid(documents.values())
        with self._lock:
            self._note_gone(self._there.keys() - there.keys())
            self._there, self.known = there, True
            self._lock.notify_all()

    # --- in a thread of its own ----------------------------------------------------------------

    def _confirm(self) -> None:
        """List the pods of the server; suspects that are missing in the list are gone."""
        while asked := self._next_suspects():
            try:
                _, documents = self._extent.read(self._session)
            except (ApiSilent, ApiRefused, KeyError, TypeError) as problem:
                _log.debug("pods that are gone cannot be listed: %r", problem)
                time.sleep(PAUSE_SECONDS)
                continue
            with self._lock:
                self._note_gone(asked - _by_uid(documents).keys())
                self._suspects -= asked
        self._session.close()

    def _next_suspects(self) -> frozenset[str]:
        """Wait for pods to ask about; none once this is closed."""
        with self._lock:
            self._lock.wait_for(lambda: self._suspects or self._closed)
            return frozenset() if self._closed else frozenset(self._suspects)


def _by_uid(documents: Iterable[Object]) -> dict[str, PeerPod]:
    pods = [pod_of(document) for document in documents]
    return {pod.uid: pod for pod in pods if pod is not None}

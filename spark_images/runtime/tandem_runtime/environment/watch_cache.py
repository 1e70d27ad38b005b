"""A cache of API server objects: listed once, then kept current by a watch.

Each cache has a thread of its own, so no caller waits for a slow or silent server; the cached
objects stay valid meanwhile. A watch that ends or breaks resumes at its last version. Everything is
listed again only if the server no longer has that version.
"""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tandem_runtime.environment.kubernetes_api import Access, ApiRefused, ApiSilent, Object, Session

PAUSE_SECONDS = 0.5
"""Pause after a failure."""

_log = logging.getLogger(__name__)


class Extent(NamedTuple):
    """The cached objects: those of a collection with a label, or a single one."""

    path: str
    query: Mapping[str, str]
    name: str | None = None

    @classmethod
    def labelled(cls, path: str, label: str, value: str) -> Extent:
        """All objects of a collection with this label."""
        return cls(path, {"labelSelector": f"{label}={value}"})

    @classmethod
    def single(cls, path: str, name: str) -> Extent:
        """One object, by name: permission to read it alone does not allow a list."""
        return cls(path, {"fieldSelector": f"metadata.name={name}"}, name)

    def read(self, session: Session) -> tuple[str | None, list[Object]]:
        """The version to watch from, None if there is nothing to watch, and the objects now.

        Raises:
            ApiSilent, ApiRefused: it could not be read.
        """
        if self.name is None:
            found = session.get(self.path, **self.query)
            return found["metadata"]["resourceVersion"], found["items"]
        try:
            single = session.get(f"{self.path}/{self.name}")
        except ApiRefused as refusal:
            if refusal.status == http.client.NOT_FOUND:
                return None, []
            raise
        return single["metadata"]["resourceVersion"], [single]


class WatchCache:
    """Watches an extent for the life of the process.

    `changed` is called, from the cache's thread, with all objects by uid: once they are read, and
    whenever one has changed.
    """

    def __init__(
        self, access: Access, extent: Extent, changed: Callable[[Mapping[str, Object]], None]
    ) -> None:
        self._session = Session(access)
        self._extent = extent
        self._changed = changed
        self._objects: dict[str, Object] = {}
        self._version: str | None = None
        """Version of the cached objects; None: everything has to be read."""
        self._closed = threading.Event()
        name = f"watch {extent.path.rpartition('/')[2]}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        """Stop watching; takes effect at the next change, or when the current watch ends."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._follow()
            except ApiSilent as silence:
                _log.debug("%s", silence)
                self._closed.wait(PAUSE_SECONDS)
            except ApiRefused as refusal:
                if refusal.status != http.client.GONE:
                    _log.warning("the API server denies the watch: %s", refusal)
                self._read_again()
            except (KeyError, TypeError, ValueError):
                _log.exception("unexpected answer of the API server")
                self._read_again()
        self._session.close()

    def _read_again(self) -> None:
        self._version = None
        self._closed.wait(PAUSE_SECONDS)

    def _follow(self) -> None:
        """Read everything if necessary, then watch until the watch ends."""
        if self._version is None:
            self._version, found = self._extent.read(self._session)
            self._objects = {_uid(each): each for each in found}
            self._changed(self._objects)
        if self._version is None:
            self._closed.wait(PAUSE_SECONDS)
            return
        extent = self._extent
        for kind, each in self._session.watch(extent.path, self._version, **extent.query):
            self._version = each["metadata"]["resourceVersion"]
            self._take(kind, each)
            if self._closed.is_set():
                return
        # Even a server that ends every watch at once must not be asked without a pause.
        self._closed.wait(PAUSE_SECONDS)

    def _take(self, kind: str, each: Object) -> None:
        if kind in ("ADDED", "MODIFIED"):
            self._objects[_uid(each)] = each
        elif kind == "DELETED":
            self._objects.pop(_uid(each), None)
        else:
            return
        self._changed(self._objects)


def _uid(each: Object) -> str:
    uid: str = each["metadata"]["uid"]
    return uid

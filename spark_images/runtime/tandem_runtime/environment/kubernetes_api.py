"""A small client of the Kubernetes API server, with only the calls that a split needs.

Requests time out and are not retried here: only the caller knows whether a retry is safe. A session
is used by one thread.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

Object = dict[str, Any]
"""A Kubernetes object, as decoded JSON."""

CREDENTIALS = "var/run/secrets/kubernetes.io/serviceaccount"
"""Directory of a pod's credentials, relative to its root."""

REQUEST_SECONDS = 4.0
"""How long an answer may take."""

WATCH_SECONDS = 30
"""After this long the server ends a watch; the next one continues from there."""

_GRACE_SECONDS = 5
"""A watch that has not ended this much later counts as broken."""

_KEEPALIVE = {
    socket.TCP_KEEPIDLE: 4,
    socket.TCP_KEEPINTVL: 2,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 10_000,
}
"""Breaks a connection to a vanished server within about ten seconds, even if it is idle."""


class ApiSilent(Exception):
    """No answer, or a temporary refusal. The request may have been carried out nevertheless."""


class ApiRefused(Exception):
    """The server refused the request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


@dataclass(slots=True)
class Access:
    """Address of the API server and this pod's credentials; files are read for each use."""

    host: str
    port: int
    credentials: Path
    answered: float = field(default=0.0, compare=False)
    """When the server last answered, by the monotonic clock."""

    def token(self) -> str:
        """The pod's token; it is replaced from time to time."""
        return (self.credentials / "token").read_text().strip()

    def tls(self) -> ssl.SSLContext:
        """A context that trusts only the cluster's own certificate authority."""
        return ssl.create_default_context(cafile=str(self.credentials / "ca.crt"))


def in_cluster_access(root: Path, environment: Mapping[str, str]) -> Access:
    """The access that every pod with a service account has."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    return Access(host, int(port), root / CREDENTIALS)


class Session:
    """Sends requests over one connection, and reconnects after every failure."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._connection: http.client.HTTPSConnection | None = None

    def get(self, path: str, **query: str) -> Object:
        """Read an object or a list, as it is now.

        Raises:
            ApiSilent: there is no answer.
            ApiRefused: the server refused.
        """
        return self._read(self._ask("GET", _url(path, query), None, REQUEST_SECONDS))

    def put(self, path: str, value: Object, **query: str) -> Object:
        """Replace an object if it still has the version that `value` names; returns the new object.

        Raises:
            ApiSilent: there is no answer; the object may have been replaced.
            ApiRefused: the server refused, with 409 if the object has changed since.
        """
        body = json.dumps(value).encode()
        return self._read(self._ask("PUT", _url(path, query), body, REQUEST_SECONDS))

    def watch(self, path: str, version: str, **query: str) -> Iterator[tuple[str, Object]]:
        """Yield the changes of a collection since a version, as (type, object), for one watch.

        Raises:
            ApiSilent: there was no answer, or the connection broke. It may also just end then.
            ApiRefused: with 410 if the server no longer has the changes since that version.
        """
        asked = {
            **query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
            "resourceVersion": version,
        }
        answer = self._ask("GET", _url(path, asked), None, WATCH_SECONDS + _GRACE_SECONDS)
        try:
            while line := answer.readline():
                event = json.loads(line)
                self._access.answered = time.monotonic()
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiRefused(int(status.get("code", 0)), str(status.get("message", "")))
                yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise ApiSilent(f"a watch broke: {problem!r}") from problem
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- one request --------------------------------------------------------------------------

    def _ask(
        self, method: str, url: str, body: bytes | None, seconds: float
    ) -> http.client.HTTPResponse:
        """Send a request; returns the answer, raises if its status is an error."""
        try:
            connection = self._connected(seconds)
            connection.request(method, url, body, self._headers())
            answer = connection.getresponse()
            self._access.answered = time.monotonic()
            if answer.status < http.client.BAD_REQUEST:
                return answer
            said = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise ApiSilent(f"{method} {url}: {problem!r}") from problem
        if answer.status >= http.client.INTERNAL_SERVER_ERROR or (
            answer.status == http.client.TOO_MANY_REQUESTS
        ):
            raise ApiSilent(f"{method} {url}: {answer.status} {said}")
        raise ApiRefused(answer.status, f"{method} {url}: {said}")

    def _read(self, answer: http.client.HTTPResponse) -> Object:
        try:
            found: Object = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as problem:
            self.close()
            raise ApiSilent(f"an answer was cut off: {problem!r}") from problem
        return found

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._access.token()}",
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "tandem-split",
        }

    def _connected(self, seconds: float) -> http.client.HTTPSConnection:
        if self._connection is None or self._connection.sock is None:
            access = self._access
            made = http.client.HTTPSConnection(
                access.host, access.port, timeout=REQUEST_SECONDS, context=access.tls()
            )
            made.connect()
            made.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE.items():
                made.sock.setsockopt(socket.IPPROTO_TCP, option, value)
            self._connection = made
        self._connection.sock.settimeout(seconds)
        return self._connection


def _url(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def namespace_path(group: str, namespace: str, kind: str) -> str:
    """The path of a collection; the core group is `v1`."""
    prefix = "/api/v1" if group == "v1" else f"/apis/{group}"
    return f"{prefix}/namespaces/{namespace}/{kind}"

"""The API server in memory, over HTTP: what the client and kopf speak to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.kube.api import Api

from tandem.kube.client import TooMany
from tandem.kube.kinds import KINDS, Object, ObjectKind
from tandem.kube.objects import labels_of, uid_of
from tandem.kube.port import Conflict, KubeError, NotFound, Refused

CODES: dict[type[KubeError], int] = {NotFound: 404, Conflict: 409, Refused: 422, TooMany: 429}
_POLL_SECONDS = 0.02
_KNOWN_TO_BE_THERE = (
    ObjectKind("v1", "Namespace", "namespaces", namespaced=False),
    ObjectKind(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
    ),
)
"""Kinds that kopf counts on, although it is told not to look at any."""


class Served:
    """An API server at an address, and how it misbehaves if it is told to."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.lock = threading.RLock()
        self.failing: int | None = None
        """Every request is answered with this code."""
        self.garbled = False
        """Answers are no JSON."""
        self.asked: list[tuple[str, str]] = []
        """Methods and paths of all requests."""
        self.stopped = threading.Event()
        served = self

        class Handler(_Handler):
            server_side = served

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(_POLL_SECONDS,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(api: Api) -> Iterator[Served]:
    served = Served(api)
    try:
        yield served
    finally:
        served.stop()


class _Handler(BaseHTTPRequestHandler):
    server_side: Served
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body: Any = json.loads(self.rfile.read(length)) if length else {}
        served = self.server_side
        served.asked.append((method, url.path))
        if served.failing is not None:
            self._send(served.failing, {"message": "on purpose"})
        elif query.get("watch") == "true":
            self._watch(url.path, query)
        else:
            try:
                with served.lock:
                    found = self._found(method, url.path, query, body)
                self._send(200, found)
            except KubeError as error:
                self._send(CODES[type(error)], {"kind": "Status", "message": str(error)})

    def _found(self, method: str, path: str, query: dict[str, str], body: Any) -> Object:
        api = self.server_side.api
        discovered = _discover(path)
        if discovered is not None:
            return discovered
        kind, namespace, name, part = _target(path)
        if name is None:
            return api.create(body) if method == "POST" else self._page(kind, namespace, query)
        if method == "PUT":
            return api.replace(body)
        if method == "PATCH" and self.headers["Content-Type"] == "application/apply-patch+yaml":
            assert (query["fieldManager"], query["force"]) == ("tandem-operator", "true")
            return api.apply(body)
        there = api.get(kind, namespace, name)
        if part == "eviction":
            there["metadata"]["uid"] = body["deleteOptions"]["preconditions"]["uid"]
            self._evict(there)
        if method == "DELETE":
            there["metadata"]["uid"] = body["preconditions"]["uid"]
            api.delete(there)
        return self._patched(there, body, part) if method == "PATCH" else there

    def _evict(self, pod: Object) -> None:
        try:
            self.server_side.api.evict(pod)
        except Conflict as conflict:
            if "budget" in str(conflict):
                raise TooMany(str(conflict)) from conflict
            raise

    def _patched(self, there: Object, patch: Any, part: str | None) -> Object:
        api = self.server_side.api
        if part == "status":
            test, add = patch
            if test["value"] != uid_of(there):
                raise Refused("the patch does not apply")
            return api.write_status(there, add["value"])
        metadata = patch["metadata"]
        if metadata.get("uid", uid_of(there)) != uid_of(there):
            raise Refused("metadata.uid: field is immutable")
        return api.mark(there, metadata.get("labels", {}), metadata.get("annotations", {}))

    def _page(self, kind: ObjectKind, namespace: str | None, query: dict[str, str]) -> Object:
        api = self.server_side.api
        items = api.list(kind, namespace, _selector(query))
        first = int(query.get("continue", 0))
        after = first + int(query.get("limit", len(items) or 1))
        metadata: dict[str, Any] = {"resourceVersion": str(api.revision)}
        if after < len(items):
            metadata["continue"] = str(after)
        # Items of a list do not say what they are.
        plain = [{k: v for k, v in i.items() if k not in {"kind", "apiVersion"}} for i in items]
        return {"kind": f"{kind.name}List", "metadata": metadata, "items": plain[first:after]}

    def _watch(self, path: str, query: dict[str, str]) -> None:
        kind, namespace, _, _ = _target(path)
        wanted = (_selector(query) or {}).items()
        seen = int(query.get("resourceVersion") or 0)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        served = self.server_side
        while not served.stopped.wait(_POLL_SECONDS):
            with served.lock:
                changes = [change for change in served.api.changes if change[0] > seen]
            for revision, what, document in changes:
                seen = revision
                of_kind = document["apiVersion"] == kind.api_version
                of_kind = of_kind and document["kind"] == kind.name
                within = namespace in {None, document["metadata"].get("namespace")}
                if of_kind and within and wanted <= dict(labels_of(document)).items():
                    event = {"type": what, "object": document}
                    try:
                        self.wfile.write(json.dumps(event).encode() + b"\n")
                        self.wfile.flush()
                    except OSError:
                        return

    def _send(self, code: int, body: Object) -> None:
        content = b"<html>" if self.server_side.garbled else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _selector(query: dict[str, str]) -> dict[str, str] | None:
    """Labels with their values; those that must only be there are not looked at."""
    parts = [part.split("=") for part in query.get("labelSelector", "").split(",") if "=" in part]
    return dict(parts)


def _target(path: str) -> tuple[ObjectKind, str | None, str | None, str | None]:
    parts = path.strip("/").split("/")
    version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, part = (*rest, None, None)[:3]
    for kind in KINDS:
        if (kind.api_version, kind.plural) == (version, plural):
            return kind, namespace, name, part
    raise NotFound(f"{path} not found")


def _discover(path: str) -> Object | None:
    """What kinds of objects there are."""
    kinds = (*KINDS, *_KNOWN_TO_BE_THERE)
    groups = sorted({kind.api_version for kind in kinds if "/" in kind.api_version})
    if path in {"/", "/version"}:
        return {"major": "1", "minor": "34"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {"kind": "APIGroupList", "groups": [_group(each) for each in groups]}
    version = path.removeprefix("/api/").removeprefix("/apis/")
    if version not in {"v1", *groups}:
        return None
    resources = [
        {
            "name": kind.plural,
            "singularName": kind.name.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.name,
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }
        for kind in kinds
        if kind.api_version == version
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def _group(version: str) -> Object:
    name, number = version.split("/")
    this = {"groupVersion": version, "version": number}
    return {"name": name, "versions": [this], "preferredVersion": this}

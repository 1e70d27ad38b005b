"""An API server that answers over real HTTPS and fails on demand.

It knows objects by collection and name, versions, conflicts, selectors, watches that resume, and
what it has forgotten. Its certificate and key lie beside this file; they are nobody's.
"""

import copy
import json
import socket
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tandem_core.model import kubernetes_names
from tandem_runtime.environment.kubernetes_api import CREDENTIALS, Access

TLS = Path(__file__).with_name("tls")
NAMESPACE = "shop"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
TOKEN = "of-the-service-account"  # noqa: S105 - of this test's own server

Object = dict[str, Any]
Selector = dict[str, str]


class FakeApi:
    """The server and what it holds."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.version = 100
        self.forgotten = 100
        """Versions up to this one cannot be watched from."""
        self.objects: dict[tuple[str, str], Object] = {}
        self.history: list[tuple[int, str, str, Object]] = []
        """(version, type, collection, object)."""
        self.tokens = {TOKEN}
        self.requests: list[str] = []
        """Method and path, with ` watch` behind watches."""
        self.silent = False
        """Requests are taken and not answered; watches show nothing."""
        self.held = False
        """Watches show nothing, as if they lagged behind."""
        self.losing = 0
        """So many changes are made without an answer."""
        self.failing: int | None = None
        """Everything is answered so."""
        self.cut = 0
        """Watches begun before this was raised break."""
        self.ended = 0
        """Watches begun before this was raised end in good order."""
        self.running = True
        self.server = _Server(("127.0.0.1", 0), type("Answers", (_Answers,), {"api": self}))
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def stop(self) -> None:
        self.change(running=False)
        self.server.shutdown()
        self.server.server_close()

    def access(self, root: Path, ca: Path = TLS / "cert.pem") -> Access:
        """What a pod whose file system begins at `root` has."""
        credentials = root / CREDENTIALS
        credentials.mkdir(parents=True, exist_ok=True)
        (credentials / "token").write_text(TOKEN)
        (credentials / "ca.crt").write_text(ca.read_text())
        return Access("127.0.0.1", self.port, credentials)

    # --- what it holds ------------------------------------------------------------------------

    def change(self, **settings: object) -> None:
        """Change how it behaves."""
        with self.lock:
            for name, value in settings.items():
                setattr(self, name, value)
            self.lock.notify_all()

    def put(self, collection: str, document: Object) -> Object:
        """Create or replace an object, as somebody else would."""
        with self.lock:
            return self._store(collection, copy.deepcopy(document))

    def delete(self, collection: str, name: str) -> None:
        with self.lock:
            self.version += 1
            gone = self.objects.pop((collection, name))
            gone = {**gone, "metadata": _versioned(gone, self.version)}
            self.history.append((self.version, "DELETED", collection, gone))
            self.lock.notify_all()

    def get(self, collection: str, name: str) -> Object:
        with self.lock:
            return copy.deepcopy(self.objects[collection, name])

    def forget(self) -> None:
        """Drop the history: watches of what is past are refused."""
        with self.lock:
            self.forgotten = self.version
            self.history = []

    def bookmark(self) -> None:
        """Tell every watch how far time is."""
        with self.lock:
            self.version += 1
            mark = {"metadata": {"resourceVersion": str(self.version)}}
            self.history.append((self.version, "BOOKMARK", "", mark))
            self.lock.notify_all()

    def count(self, request: str) -> int:
        """How often something was asked for."""
        with self.lock:
            return self.requests.count(request)

    def _store(self, collection: str, document: Object) -> Object:
        name = document["metadata"]["name"]
        self.version += 1
        kind = "MODIFIED" if (collection, name) in self.objects else "ADDED"
        document["metadata"] = _versioned(document, self.version)
        self.objects[collection, name] = document
        self.history.append((self.version, kind, collection, document))
        self.lock.notify_all()
        return document

    # --- requests -------------------------------------------------------------------------------

    def listed(self, collection: str, wanted: Selector) -> Object:
        items = [o for (where, _), o in self.objects.items() if where == collection]
        found = [each for each in items if _matches(each, wanted)]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": found}

    def replace(self, collection: str, name: str, document: Object) -> tuple[int, Object]:
        stored = self.objects.get((collection, name))
        if stored is None:
            return 404, {"message": "not found"}
        if document["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        return 200, self._store(collection, document)

    def after(self, version: int, collection: str, wanted: Selector) -> list[Object]:
        """Events for a watch. What no longer matches looks deleted."""
        return [
            {"type": _seen_as(kind, each, wanted), "object": each}
            for number, kind, where, each in self.history
            if number > version and where in ("", collection)
        ]


def _seen_as(kind: str, each: Object, wanted: Selector) -> str:
    return kind if kind in ("BOOKMARK", "DELETED") or _matches(each, wanted) else "DELETED"


def _versioned(document: Object, version: int) -> Object:
    metadata = {"uid": f"uid-{version}", **document["metadata"]}
    return {**metadata, "resourceVersion": str(version)}


def _matches(document: Object, wanted: Selector) -> bool:
    metadata = document["metadata"]
    has = {**metadata.get("labels", {}), "metadata.name": metadata["name"]}
    return all(has.get(name) == value for name, value in wanted.items())


def _selector(query: dict[str, list[str]]) -> Selector:
    terms = [*query.get("labelSelector", []), *query.get("fieldSelector", [])]
    return dict(term.split("=", 1) for term in terms)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Whoever asks may hang up, or not trust this server."""


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeApi

    def do_GET(self) -> None:
        if not self._permitted():
            return
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if "watch" in query:
            self._watch(_Watch(self.api, path, int(query["resourceVersion"][0]), _selector(query)))
            return
        collection, _, name = path.rpartition("/")
        with self.api.lock:
            if path in (PODS, MAPS, LEASES):
                status, found = 200, self.api.listed(path, _selector(query))
            elif (collection, name) in self.api.objects:
                status, found = 200, self.api.objects[collection, name]
            else:
                status, found = 404, {"message": "not found"}
            body = json.dumps(found).encode()
        self._send(status, body)

    def do_PUT(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._permitted():
            return
        collection, _, name = urlsplit(self.path).path.rpartition("/")
        with self.api.lock:
            status, found = self.api.replace(collection, name, document)
            lost, self.api.losing = self.api.losing > 0, max(self.api.losing - 1, 0)
        if lost:
            self._break()
        else:
            self._send(status, json.dumps(found).encode())

    def _permitted(self) -> bool:
        """Whether to answer as usual; anything else is done here."""
        api, url = self.api, urlsplit(self.path)
        watch = " watch" if "watch" in parse_qs(url.query) else ""
        with api.lock:
            api.requests.append(f"{self.command} {url.path}{watch}")
            api.lock.wait_for(lambda: not api.silent or not api.running)
            allowed = self.headers["Authorization"] in {f"Bearer {t}" for t in api.tokens}
            status = api.failing or (None if allowed else 401)
        if status is not None:
            self._send(status, b'{"message": "no"}')
        return status is None

    def _watch(self, watch: "_Watch") -> None:
        if watch.is_too_old():
            self._send(410, b'{"message": "too old"}')
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            while True:
                events, over = watch.next()
                for event in events:
                    self._chunk(json.dumps(event).encode() + b"\n")
                if over is not None:
                    break
            if over:
                self._chunk(b"")
            else:
                self._break()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send(self, status: int, body: bytes) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def _break(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        pass


class _Watch:
    """One watch, and how far it has shown what happened."""

    def __init__(self, api: FakeApi, path: str, version: int, wanted: Selector) -> None:
        self.api, self.path, self.version, self.wanted = api, path, version, wanted
        with api.lock:
            self.cut, self.ended = api.cut, api.ended

    def is_too_old(self) -> bool:
        return self.version < self.api.forgotten

    def next(self) -> tuple[list[Object], bool | None]:
        """Events, and whether the watch is over: in good order (true) or broken (false)."""
        with self.api.lock:
            self.api.lock.wait_for(self._is_due)
            if self.api.cut != self.cut or not self.api.running:
                return [], False
            if self.api.ended != self.ended:
                return [], True
            if self.is_too_old():
                status = {"kind": "Status", "code": 410, "message": "too old"}
                return [{"type": "ERROR", "object": status}], True
            events = self.api.after(self.version, self.path, self.wanted)
            self.version = self.api.version
            return events, None

    def _is_due(self) -> bool:
        api = self.api
        if api.cut != self.cut or api.ended != self.ended or not api.running:
            return True
        if api.silent or api.held:
            return False
        return self.is_too_old() or bool(api.after(self.version, self.path, self.wanted))


def pod(
    uid: str,
    kind: str = "split",
    *,
    host: str | None = "127.0.0.1",
    pipeline: str = "p",
    phase: str = "Running",
    going: bool = False,
) -> Object:
    """A pod's document."""
    deleted = {"deletionTimestamp": "2024-05-01T12:00:00Z"} if going else {}
    status = {"phase": phase} if host is None else {"phase": phase, "podIP": host}
    labels = {kubernetes_names.PIPELINE_LABEL: pipeline, kubernetes_names.KIND_LABEL: kind}
    return {
        "metadata": {"name": f"{kind}-{uid}", "uid": uid, "labels": labels, **deleted},
        "spec": {"nodeName": f"node-{uid}"},
        "status": status,
    }


def lease(pipeline: str = "p") -> Object:
    """A register as the operator makes it."""
    return {"metadata": {"name": kubernetes_names.register_name(pipeline)}, "spec": {}}

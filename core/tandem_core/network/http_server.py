"""Pages over HTTP for probes, Prometheus and watchers, answered from threads of their own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

_PATIENCE_SECONDS = 10
"""How long whoever asks may take to do so."""

TEXT = "text/plain"


class Page(NamedTuple):
    """What is answered."""

    code: int
    kind: str
    body: bytes


def metrics() -> Page:
    """What this process counts, for Prometheus."""
    return Page(200, CONTENT_TYPE_LATEST, generate_latest())


def verdict(well: bool, trouble: str) -> Page:
    """The answer to a probe."""
    return Page(200, TEXT, b"ok\n") if well else Page(503, TEXT, f"{trouble}\n".encode())


def family_of(host: str) -> socket.AddressFamily:
    """The kind of an address; a name counts as one of IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def serve(address: tuple[str, int], page: Callable[[str, str], Page]) -> ThreadingHTTPServer:
    """Answer what `page` makes of a path and the given authorization, "" if there is none.

    It is asked from any thread. Port 0 lets the system choose one.
    """

    class Answers(BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS

        def do_GET(self) -> None:
            code, kind, body = page(self.path, self.headers.get("Authorization", ""))
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                # Whoever asked may have lost patience.
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line."""

    class Server(ThreadingHTTPServer):
        address_family = family_of(address[0])
        daemon_threads = True

    server = Server(address, Answers)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server

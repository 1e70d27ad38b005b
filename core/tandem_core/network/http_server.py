"""Serves probes, metrics and reports over HTTP, in threads of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

_PATIENCE_SECONDS = 10
"""Seconds that a client may take to send its request."""

TEXT = "text/plain"


class Page(NamedTuple):
    """An HTTP response."""

    code: int
    kind: str
    body: bytes


def metrics() -> Page:
    """Return the metrics of this process, for Prometheus."""
    return Page(200, CONTENT_TYPE_LATEST, generate_latest())


def verdict(well: bool, trouble: str) -> Page:
    """Return the response to a probe."""
    return Page(200, TEXT, b"ok\n") if well else Page(503, TEXT, f"{trouble}\n".encode())


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of an address; a host name counts as IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def serve(address: tuple[str, int], page: Callable[[str, str], Page]) -> ThreadingHTTPServer:
    """Serve what `page` returns for a path and the Authorization header, "" if there is none.

    `page` is called from any thread. Port 0 lets the system choose one.
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
                # The client may have disconnected.
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    class Server(ThreadingHTTPServer):
        address_family = family_of(address[0])
        daemon_threads = True

    server = Server(address, Answers)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server

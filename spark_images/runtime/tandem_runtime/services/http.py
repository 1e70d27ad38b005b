"""What a process tells over HTTP: `/metrics`, `/healthz`, `/state`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest


def serve(host: str, healthy: Callable[[], bool], state: Callable[[], object]) -> int:
    """Answer from threads of its own; returns the port, chosen by the system."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest())
            elif self.path == "/healthz":
                well = healthy()
                text = b"ok\n" if well else b"the loop has stopped turning\n"
                self._answer(200 if well else 503, "text/plain", text)
            elif self.path == "/state":
                self._answer(200, "application/json", json.dumps(state()).encode())
            else:
                self._answer(404, "text/plain", b"/metrics, /healthz, /state\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                # Whoever asked may have lost patience.
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line."""

    server = ThreadingHTTPServer((host, 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return int(server.server_address[1])

"""What a process tells over HTTP: `/metrics`, `/healthz`, `/readyz`, `/state`.

The state is for whoever has the pipeline's token; the rest is for probes and Prometheus.
"""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

_PATIENCE_SECONDS = 10
"""How long whoever asks may take to do so."""


class Pages(NamedTuple):
    """What is answered, asked for from any thread."""

    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    state: Callable[[], object]


def serve(address: tuple[str, int], token: str, pages: Pages) -> int:
    """Answer from threads of its own; returns the port, chosen by the system if 0 is given."""
    permission = f"Bearer {token}".encode()

    class Answers(BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest())
            elif self.path == "/healthz":
                self._tell(pages.healthy(), "the loop has stopped turning")
            elif self.path == "/readyz":
                self._tell(pages.ready(), "not ready")
            elif self.path != "/state":
                self._answer(404, "text/plain", b"/metrics, /healthz, /readyz, /state\n")
            elif self._has_token():
                self._answer(200, "application/json", json.dumps(pages.state()).encode())
            else:
                self._answer(401, "text/plain", b"the pipeline's token is missing or wrong\n")

        def _has_token(self) -> bool:
            given = self.headers.get("Authorization", "")
            return hmac.compare_digest(given.encode(), permission)

        def _tell(self, well: bool, trouble: str) -> None:
            text = "ok" if well else trouble
            self._answer(200 if well else 503, "text/plain", f"{text}\n".encode())

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

    server = ThreadingHTTPServer(address, Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return int(server.server_address[1])

"""What the operator tells over HTTP: `/metrics` and `/healthz`."""

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest


def serve(port: int, healthy: Callable[[], bool]) -> ThreadingHTTPServer:
    """Answer from threads of its own, on all addresses; port 0 lets the system choose one."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest())
            elif self.path == "/healthz":
                well = healthy()
                text = b"ok\n" if well else b"a turn is stuck\n"
                self._answer(200 if well else 503, "text/plain", text)
            else:
                self._answer(404, "text/plain", b"/metrics, /healthz\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line."""

    server = ThreadingHTTPServer(("", port), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server

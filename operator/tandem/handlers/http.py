"""What the operator tells over HTTP: `/metrics` and `/healthz`."""

from collections.abc import Callable
from http.server import ThreadingHTTPServer

from tandem_core.network import http_server as pages
from tandem_core.network.http_server import TEXT, Page, metrics, verdict


def serve(port: int, healthy: Callable[[], bool]) -> ThreadingHTTPServer:
    """Answer from threads of its own, on all addresses; port 0 lets the system choose one."""

    def page(path: str, _: str) -> Page:
        if path == "/metrics":
            return metrics()
        if path == "/healthz":
            return verdict(healthy(), "a turn is stuck")
        return Page(404, TEXT, b"/metrics, /healthz\n")

    return pages.serve(("", port), page)

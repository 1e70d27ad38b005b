"""Health of a process: failing sources and sinks, and its HTTP endpoints."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NamedTuple

from tandem_core.contract.reports import MemberReport, Trouble, encode_report
from tandem_core.network import http_server
from tandem_core.network.http_server import TEXT, Page, metrics, verdict


class HealthCheck:
    """Tracks whether one source partition, or one sink, is failing.

    One thread reports, any thread may read.
    """

    def __init__(self, tell_event: Callable[[str, str, str], None]) -> None:
        self.trouble: Trouble | None = None
        self._tell_event = tell_event

    def failed(self, trouble: Trouble) -> None:
        """Record a failure; an event is sent when the trouble changes, not at every attempt."""
        if trouble != self.trouble:
            self.trouble = trouble
            self._tell_event(trouble.reason.value, trouble.subject, trouble.message)

    def worked(self) -> None:
        """Record a success, which ends the trouble."""
        self.trouble = None


class Pages(NamedTuple):
    """Callbacks that produce the responses; called from any thread."""

    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    report: Callable[[], MemberReport]


def serve(address: tuple[str, int], token: str, pages: Pages) -> int:
    """Serve from threads of its own; returns the port, chosen by the system if 0 is given."""
    permission = f"Bearer {token}".encode()

    def page(path: str, authorization: str) -> Page:
        if path == "/metrics":
            return metrics()
        if path == "/healthz":
            return verdict(pages.healthy(), "the event loop is stuck")
        if path == "/readyz":
            return verdict(pages.ready(), "not ready")
        if path != "/state":
            return Page(404, TEXT, b"/metrics, /healthz, /readyz, /state\n")
        if not hmac.compare_digest(authorization.encode(), permission):
            return Page(401, TEXT, b"the pipeline's token is missing or wrong\n")
        return Page(200, "application/json", encode_report(pages.report()))

    return int(http_server.serve(address, page).server_address[1])

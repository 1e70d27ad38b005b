"""What a process tells over HTTP: `/metrics`, `/healthz`, `/readyz`, `/state`.

The state is for whoever has the pipeline's token; the rest is for probes and Prometheus.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NamedTuple

from tandem_core.contract.reports import MemberReport, encode_report
from tandem_core.network import http_server as wire
from tandem_core.network.http_server import TEXT, Page, metrics, verdict


class Pages(NamedTuple):
    """What is answered, asked for from any thread."""

    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    report: Callable[[], MemberReport]


def serve(address: tuple[str, int], token: str, pages: Pages) -> int:
    """Answer from threads of its own; returns the port, chosen by the system if 0 is given."""
    permission = f"Bearer {token}".encode()

    def page(path: str, authorization: str) -> Page:
        if path == "/metrics":
            return metrics()
        if path == "/healthz":
            return verdict(pages.healthy(), "the loop has stopped turning")
        if path == "/readyz":
            return verdict(pages.ready(), "not ready")
        if path != "/state":
            return Page(404, TEXT, b"/metrics, /healthz, /readyz, /state\n")
        if not hmac.compare_digest(authorization.encode(), permission):
            return Page(401, TEXT, b"the pipeline's token is missing or wrong\n")
        return Page(200, "application/json", encode_report(pages.report()))

    return int(wire.serve(address, page).server_address[1])

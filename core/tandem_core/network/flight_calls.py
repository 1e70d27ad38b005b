"""Asks a process of a pipeline for something, by an action of Arrow Flight.

Every call carries the pipeline's token.
"""

from __future__ import annotations

from typing import Any

from pyarrow import flight

UNANSWERED_MS = 8_000
"""A connection on which nothing was acknowledged for so long is broken: its machine may be lost."""

_CHANNEL = [
    # The time without an acknowledgement counts only where pings are on; so they are, every 24
    # days, since the other side takes frequent ones amiss.
    ("grpc.keepalive_time_ms", 2**31 - 2),
    ("grpc.keepalive_timeout_ms", UNANSWERED_MS),
    # How long a connection may take to come about, and how long to wait after a failure.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Each client has its own connection, so a new client starts without a predecessor's troubles.
    ("grpc.use_local_subchannel_pool", 1),
]

ASSIGN = "assign"
"""Tells a spare the pair that it belongs to from now on."""

HEADER = "tandem-token"
"""Where a call carries the pipeline's token."""


def connect(host: str, port: int) -> Any:
    """A client of the process at an address."""
    return flight.connect(location(host, port), generic_options=_CHANNEL)


def location(host: str, port: int) -> str:
    """An address as Flight wants it; one of IPv6 has colons of its own."""
    return f"grpc://[{host}]:{port}" if ":" in host else f"grpc://{host}:{port}"


def call(
    host: str, port: int, token: str, action: str, body: bytes = b"", seconds: float = 5.0
) -> bytes:
    """Ask a process for something.

    Raises:
        pyarrow.ArrowException: it cannot be reached in time, or it refuses.
    """
    headers = [(HEADER.encode(), token.encode())]
    options = flight.FlightCallOptions(headers=headers, timeout=seconds)
    with connect(host, port) as client:
        results = list(client.do_action(flight.Action(action, body), options))
    return b"".join(result.body.to_pybytes() for result in results)

"""Calls processes of a pipeline, by actions of Arrow Flight.

Every call carries the pipeline's token.
"""

from __future__ import annotations

from typing import Any

from pyarrow import flight

UNANSWERED_MS = 8_000
"""A connection without an acknowledgement for this long is broken: its node may be lost."""

_CHANNEL = [
    # The timeout applies only if pings are enabled. They are sent every 24 days, because the peer
    # rejects frequent ones.
    ("grpc.keepalive_time_ms", 2**31 - 2),
    ("grpc.keepalive_timeout_ms", UNANSWERED_MS),
    # Time to establish a connection, and the back-off after a failure.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Each client has its own connection, so a new client does not inherit a broken one.
    ("grpc.use_local_subchannel_pool", 1),
]

ASSIGN = "assign"
"""Assigns a spare to a pair."""

HEADER = "tandem-token"
"""The header with the pipeline's token."""


def connect(host: str, port: int) -> Any:
    """Return a client of the process at an address."""
    return flight.connect(location(host, port), generic_options=_CHANNEL)


def location(host: str, port: int) -> str:
    """Return the Flight URI of an address; IPv6 addresses are in brackets."""
    return f"grpc://[{host}]:{port}" if ":" in host else f"grpc://{host}:{port}"


def call(
    host: str, port: int, token: str, action: str, body: bytes = b"", seconds: float = 5.0
) -> bytes:
    """Run an action of a process and return its result.

    Raises:
        pyarrow.ArrowException: the process cannot be reached in time, or it refuses.
    """
    headers = [(HEADER.encode(), token.encode())]
    options = flight.FlightCallOptions(headers=headers, timeout=seconds)
    with connect(host, port) as client:
        results = list(client.do_action(flight.Action(action, body), options))
    return b"".join(result.body.to_pybytes() for result in results)

import socket

from tandem_core.network.http_server import family_of


def test_pages_are_served_on_ipv4_and_ipv6() -> None:
    assert family_of("0.0.0.0") is socket.AF_INET  # noqa: S104 - nothing is served here
    assert family_of("::") is socket.AF_INET6

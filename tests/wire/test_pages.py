import socket

from tandem_core.network.http_server import family_of


def test_pages_are_served_on_addresses_of_both_kinds() -> None:
    assert family_of("0.0.0.0") is socket.AF_INET  # noqa: S104 - nothing is served here
    assert family_of("::") is socket.AF_INET6

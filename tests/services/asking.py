"""Asks a process over HTTP."""

import http.client

from tandem_core.contract.reports import MemberReport
from tandem_core.network.member_client import Address, ask


def get(port: int, path: str, token: str | None = None, host: str = "127.0.0.1") -> tuple[int, str]:
    """Status and body of an answer; status 0 if there is none."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def report(port: int, token: str, host: str = "127.0.0.1") -> MemberReport | None:
    """What a process says of itself; None if it does not answer."""
    return ask(Address(host, port), token)

"""Polls the reports of members, each in a thread of its own: a frozen member delays no other."""

import http.client
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import Counter

from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import MemberReport, decode_report

PERIOD = 0.5
"""Seconds between two polls; reports are little older than that."""
PATIENCE = 1.0
"""Seconds after which a request times out."""

_HEALTH_EVERY = 4
"""Number of polls per check of `/healthz`, which fails if the member's loop hangs."""
_MOST_BYTES = 8 * 2**20
_NO_ANSWER = (OSError, ValueError, KeyError, TypeError, http.client.HTTPException)
_UNREADABLE = Counter(
    "tandem_operator_unreadable_reports",
    "Answers of members that are no report, or one of a form that is not known here.",
)

_log = logging.getLogger(__name__)


class Address(NamedTuple):
    """The HTTP address of a process."""

    host: str
    port: int


Whereabouts = Callable[[], Address]
"""Returns the current address of a process; raises OSError, ValueError, KeyError or TypeError
while it is unknown."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The results of polling a process."""

    heard: float | None = None
    """Time of its last answer."""
    silent_since: float | None = None
    """Time of the first failed poll since its last answer.

    Counted from the failure, not from the request: an observer that was itself paused in between
    must not count that time as the member's silence.
    """
    report: MemberReport | None = None

    def is_fresh(self, now: float, seconds: float) -> bool:
        """Whether it has answered within this many seconds."""
        return self.heard is not None and now - self.heard < seconds


class MemberPoller:
    """Polls one process until it is stopped."""

    def __init__(self, name: str, where: Whereabouts, token: str) -> None:
        self._name = name
        self._where = where
        self._token = token
        self._look = Observation()
        self._asked = 0
        self._told_unreadable = False
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name=f"watch {name}", daemon=True).start()

    def look(self) -> Observation:
        """Return the current observation."""
        return self._look

    def stop(self) -> None:
        """Stop polling."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            report = self._ask()
            now, before = time.monotonic(), self._look
            if report is not None:
                self._look = Observation(heard=now, report=report)
            else:
                silent_since = now if before.silent_since is None else before.silent_since
                self._look = Observation(before.heard, silent_since, before.report)
            self._stopped.wait(PERIOD)

    def _ask(self) -> MemberReport | None:
        """Return its report; None if it does not answer or is unhealthy."""
        report = None
        try:
            address = self._where()
            if self._asked % _HEALTH_EVERY == 0:
                _get(address, "/healthz", self._token)
            report = _report_at(address, self._token)
            self._told_unreadable = False
        except Undecodable as problem:
            self._tell_unreadable(problem)
        except _NO_ANSWER:
            pass
        # After a failure the next poll checks its health.
        self._asked = self._asked + 1 if report is not None else 0
        return report

    def _tell_unreadable(self, problem: Undecodable) -> None:
        """Log it once, until a report can be read again."""
        if not self._told_unreadable:
            self._told_unreadable = True
            _log.warning("%s counts as silent, its answer cannot be read: %s", self._name, problem)


def ask(address: Address, token: str) -> MemberReport | None:
    """Return the report of the process at an address; None if it does not answer."""
    try:
        return _report_at(address, token)
    except _NO_ANSWER:
        return None


def _report_at(address: Address, token: str) -> MemberReport:
    """Return the report of the process at an address.

    Raises:
        OSError, http.client.HTTPException, ValueError: no answer.
        Undecodable: the answer is not a report.
    """
    form = _get(address, "/state", token)
    try:
        return decode_report(form)
    except Undecodable:
        _UNREADABLE.inc()
        raise


def _get(address: Address, path: str, token: str) -> bytes:
    """Return the body of a response.

    Raises:
        OSError, http.client.HTTPException: no answer.
        ValueError: the status is not 200.
    """
    connection = http.client.HTTPConnection(address.host, address.port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = answer.read(_MOST_BYTES)
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise ValueError(f"{path}: {answer.status}")
    return body

"""Asks members how they are, each from a thread of its own: a frozen one delays nobody."""

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
"""Seconds between two questions; what is shown is little older than that."""
PATIENCE = 1.0
"""Seconds that an answer may take."""

_HEALTH_EVERY = 4
"""Of so many questions one also asks whether the member's loop turns."""
_MOST_BYTES = 8 * 2**20
_NO_ANSWER = (OSError, ValueError, KeyError, TypeError, http.client.HTTPException)
_UNREADABLE = Counter(
    "tandem_operator_unreadable_reports",
    "Answers of members that are no report, or one of a form that is not known here.",
)

_log = logging.getLogger(__name__)


class Address(NamedTuple):
    """Where a process answers over HTTP."""

    host: str
    port: int


Whereabouts = Callable[[], Address]
"""Where a process can be asked at the moment; raises OSError, ValueError, KeyError or TypeError
while nobody knows."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a process by asking it."""

    heard: float | None = None
    """When it last answered."""
    silent_since: float | None = None
    """When a question first went without an answer, after which none was answered.

    Counted from the failure, not from the question: an observer that was stopped itself in between
    must not take that time for the member's silence.
    """
    report: MemberReport | None = None

    def is_fresh(self, now: float, seconds: float) -> bool:
        """Whether it has answered within so many seconds."""
        return self.heard is not None and now - self.heard < seconds


class MemberPoller:
    """Asks one process until it is told to stop."""

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
        """What is known now."""
        return self._look

    def stop(self) -> None:
        """Ask no more."""
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
        """Its answer; None if there is none, or if it says that it is not well."""
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
        # After a failure the next question asks for its health again.
        self._asked = self._asked + 1 if report is not None else 0
        return report

    def _tell_unreadable(self, problem: Undecodable) -> None:
        """Log it once, until it can be read again."""
        if not self._told_unreadable:
            self._told_unreadable = True
            _log.warning("%s counts as silent, its answer cannot be read: %s", self._name, problem)


def ask(address: Address, token: str) -> MemberReport | None:
    """What the process at an address says of itself now; None if it does not answer."""
    try:
        return _report_at(address, token)
    except _NO_ANSWER:
        return None


def _report_at(address: Address, token: str) -> MemberReport:
    """What the process at an address says.

    Raises:
        OSError, http.client.HTTPException, ValueError: no answer.
        Undecodable: one that cannot be read.
    """
    form = _get(address, "/state", token)
    try:
        return decode_report(form)
    except Undecodable:
        _UNREADABLE.inc()
        raise


def _get(address: Address, path: str, token: str) -> bytes:
    """The body of an answer.

    Raises:
        OSError, http.client.HTTPException: no answer.
        ValueError: an answer other than 200.
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

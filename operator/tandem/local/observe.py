"""Asks members how they are, each from a thread of its own: a frozen one delays nobody."""

import http.client
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.policy.reports import MemberReport, read_report

PERIOD = 0.5
"""Seconds between two questions; what is shown is little older than that."""
PATIENCE = 1.0
"""Seconds that an answer may take."""

_HEALTH_EVERY = 4
"""Of so many questions one also asks whether the member's loop turns."""
_MOST_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a process by asking it."""

    heard: float | None = None
    """When it last answered."""
    silent_since: float | None = None
    """When a question first went without an answer, after which none was answered.

    Counted from the failure, not from the question: an observer that was stopped itself in between
    must not take that time for the member's silence.
    """
    report: MemberReport | None = None


class Watch:
    """Asks one process until it is told to stop."""

    def __init__(self, card: Path, pid: int) -> None:
        """`card` is the file in which the process says where it can be asked."""
        self._card = card
        self._pid = pid
        self._look = Look()
        self._asked = 0
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name=f"watch {card.stem}", daemon=True).start()

    def look(self) -> Look:
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
                self._look = Look(heard=now, report=report)
            elif before.heard is not None:
                silent_since = now if before.silent_since is None else before.silent_since
                self._look = Look(before.heard, silent_since, before.report)
            self._stopped.wait(PERIOD)

    def _ask(self) -> MemberReport | None:
        """Its answer; None if there is none, or if it says that it is not well."""
        try:
            card: Any = json.loads(self._card.read_text())
            if card["pid"] != self._pid:
                return None
            address = (card["host"], card["http_port"])
            if self._asked % _HEALTH_EVERY == 0:
                _get(*address, "/healthz")
            report = read_report(json.loads(_get(*address, "/state")))
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            # The next question asks for its health again.
            self._asked = 0
            return None
        self._asked += 1
        return report


def _get(host: str, port: int, path: str) -> bytes:
    """The body of an answer.

    Raises:
        OSError, http.client.HTTPException: no answer.
        ValueError: an answer other than 200.
    """
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(_MOST_BYTES)
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise ValueError(f"{path}: {answer.status}")
    return body

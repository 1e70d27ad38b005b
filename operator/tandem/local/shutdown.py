"""The request to stop a run, and the result of a run."""

import threading
from dataclasses import dataclass
from enum import StrEnum

from tandem.policy.snapshot import Complaint
from tandem_core.model.status import Status


class EndReason(StrEnum):
    """The reason why a run ended."""

    COMPLETED = "completed"
    TIME_OVER = "time over"
    ASKED = "asked"
    HALTED = "halted"


@dataclass(frozen=True, slots=True)
class End:
    """The result of a run."""

    why: EndReason
    status: Status
    complaint: Complaint | None = None
    forced: bool = False
    """Whether a member had to be killed."""


class Stop:
    """The request of signals to stop: gracefully at first, at once when repeated."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.at_once = False

    def ask(self) -> None:
        """Request a graceful stop; a second request means at once."""
        self.at_once = self._asked.is_set()
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether a stop was requested."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> None:
        """Wait, at most until the first request."""
        self._asked.wait(seconds)

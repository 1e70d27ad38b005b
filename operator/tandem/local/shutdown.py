"""How a run is asked to end, and how it ended."""

import threading
from dataclasses import dataclass
from enum import StrEnum

from tandem.policy.snapshot import Complaint
from tandem_core.model.status import Status


class EndReason(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"
    TIME_OVER = "time over"
    ASKED = "asked"
    HALTED = "halted"


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended."""

    why: EndReason
    status: Status
    complaint: Complaint | None = None
    forced: bool = False
    """Some member had to be killed."""


class Stop:
    """What signals say: stop, and when said again, at once."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.at_once = False

    def ask(self) -> None:
        """Stop in good order; asked again, at once."""
        self.at_once = self._asked.is_set()
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> None:
        """Wait, but not longer than until it is asked for the first time."""
        self._asked.wait(seconds)

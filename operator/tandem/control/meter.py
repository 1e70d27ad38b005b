"""What is counted about pipelines."""

from typing import Protocol

from tandem.control.keys import Key
from tandem_core.model.states import Word
from tandem_core.model.status import Status


class Meter(Protocol):
    """Told by the loops, from any thread."""

    def event(self, key: Key, reason: Word) -> None:
        """An event was written."""

    def status(self, key: Key, status: Status) -> None:
        """What a pipeline is now."""

    def gone(self, key: Key) -> None:
        """A pipeline is not there any more."""

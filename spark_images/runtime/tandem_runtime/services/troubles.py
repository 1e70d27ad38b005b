"""What keeps a source or a sink from working at the moment; it is tried again without end."""

from __future__ import annotations

from collections.abc import Callable

from tandem_core.contract.reports import Trouble


class Spot:
    """A place where there may be trouble: one source partition, or one sink.

    One thread works there, any other may look.
    """

    def __init__(self, tell_event: Callable[[str, str, str], None]) -> None:
        self.trouble: Trouble | None = None
        self._tell_event = tell_event

    def failed(self, trouble: Trouble) -> None:
        """It did not work. Told when it begins or becomes another one, not at every trial."""
        if trouble != self.trouble:
            self.trouble = trouble
            self._tell_event(trouble.reason.value, trouble.subject, trouble.message)

    def worked(self) -> None:
        """It works again."""
        self.trouble = None

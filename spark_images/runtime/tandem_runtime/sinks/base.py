"""The interface between a merge and its sinks."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tandem_core.model.states import SinkClass

# pyarrow has no type information, so its values are Any to the checker.
Answer = tuple[str, Any]
"""The name of a pair, and its rows of an epoch as a `pyarrow.Table`."""


class SinkError(Exception):
    """A sink cannot be delivered to."""


class SinkFailed(SinkError):
    """The sink could not be reached or written. No partial result is visible; a retry is safe."""

    def __init__(self, message: str, hint: str = "") -> None:
        """`hint` is the remedy, unless the message has it."""
        super().__init__(message)
        self.hint = hint


class ForeignSink(SinkError):
    """The sink belongs to another pipeline. Only another manifest, or removing it, helps."""


class SinkUnsupported(SinkError):
    """The manifest names a kind of sink that is not supported. Only another manifest helps."""


class SlotPosition(NamedTuple):
    """The last epoch that a slot has delivered, and whether the slot has ended there."""

    position: int
    sealed: bool


class Sink(Protocol):
    """A destination of results that keeps its own position."""

    @property
    def delivery(self) -> SinkClass:
        """The delivery guarantee of this sink."""

    @property
    def rows_out(self) -> int:
        """Rows ever delivered by this slot, as of the last read of the position.

        Slot 0 also counts those of slots that have ended.
        """

    @property
    def sealed(self) -> bool:
        """Whether this slot has ended here, as of the last read of the position."""

    def position(self) -> int:
        """Return the last epoch that this slot has delivered.

        Raises:
            SinkFailed: the sink cannot be read now.
        """

    def deliver(self, epoch: int, answers: Sequence[Answer], *, shared: bool = False) -> int:
        """Deliver an epoch if the position is the one before it, else do nothing.

        If it is `shared`, other slots deliver the rest of it. Returns the position afterwards,
        whichever merge moved it.

        Raises:
            SinkFailed: it failed now; the position shows whether it was delivered nevertheless.
        """

    def seal(self, slot: int, first: int, last: int) -> SlotPosition:
        """Seal another slot if its position is `last`; returns its position now.

        A slot that never delivered here ended before it began, with `last` before `first`.

        Raises:
            SinkFailed: it failed now; the slot may be sealed nevertheless.
        """

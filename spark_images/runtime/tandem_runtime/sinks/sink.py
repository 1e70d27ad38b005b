"""What every sink is to a merge."""

from collections.abc import Sequence
from typing import Any, Protocol

from tandem.model.states import SinkClass

# pyarrow has no type information, so its values are Any to the checker.
Answer = tuple[str, Any]
"""The name of a pair, and its rows of an epoch as a `pyarrow.Table`."""


class SinkError(Exception):
    """A sink cannot be delivered to."""


class SinkFailed(SinkError):
    """The sink could not be reached or written. Nothing half-done is to be seen; try again."""


class ForeignSink(SinkError):
    """The sink belongs to another pipeline. Only another manifest, or removing it, helps."""


class SinkUnsupported(SinkError):
    """The manifest asks for a kind of sink that there is not. Only another manifest helps."""


class Sink(Protocol):
    """A place for results that knows its position."""

    @property
    def delivery(self) -> SinkClass:
        """What this sink promises."""

    @property
    def rows_out(self) -> int:
        """Rows ever delivered, by whomever, as of the last look at the position."""

    def position(self) -> int:
        """The last epoch delivered; 0 before the first.

        Raises:
            SinkFailed: the sink cannot be read now.
        """

    def deliver(self, epoch: int, answers: Sequence[Answer]) -> int:
        """Deliver an epoch if the position is the one before it, else do nothing.

        Answers the position afterwards, whoever moved it.

        Raises:
            SinkFailed: it could not be done now. Whether it was done after all tells the position.
        """

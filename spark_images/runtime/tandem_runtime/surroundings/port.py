"""The port to the surroundings. Behind it is a directory, or an API server."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from tandem.model.pipeline import Pipeline
from tandem_runtime.protocol.data import Intent, Member, Place


class Card(NamedTuple):
    """What a process tells of itself, so that others find it."""

    name: str
    kind: str
    pair: str | None
    volume: str
    incarnation: int
    host: str
    port: int
    http_port: int
    pid: int


class Surroundings(Protocol):
    """Everything is asked for again and again; nothing here calls back."""

    pipeline: Pipeline
    uid: str
    token: str
    node: str
    """Where this process runs, for keeping copies apart."""

    def announce(self, card: Card) -> None:
        """Tell where this process can be reached."""

    def address_of(self, volume: str) -> tuple[str, int] | None:
        """Where the process on a volume can be reached."""

    def splits(self) -> tuple[Member, ...]:
        """The splits that exist."""

    def intent(self) -> Intent | None:
        """The newest intent."""

    def gone(self) -> frozenset[str]:
        """Volumes that are gone for good."""

    def read_register(self) -> Place:
        """What stands in the register."""

    def swap_register(self, expected: int, place: Place) -> tuple[bool, Place]:
        """Compare and set; true if it took place, and what stands there now.

        Raises:
            Outcast: this process's own volume counts as gone.
        """

    def dead_letters(self, stream: str) -> Path:
        """Where rows of a stream go that do not fit its schema."""

    def shown(self) -> Path:
        """Below this directory rows for a console go, for whoever shows them."""


class Outcast(Exception):
    """The volume of this process counts as gone: it has to end."""

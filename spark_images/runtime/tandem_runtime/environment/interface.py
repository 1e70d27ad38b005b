"""The port to the environment. Behind it is a directory, or an API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.reports import Card
from tandem_core.model.pipeline import Pipeline
from tandem_runtime.protocol.types import Member, RegisterState


class Environment(Protocol):
    """Everything is asked for again and again; nothing here calls back, and nothing waits long."""

    pipeline: Pipeline
    uid: str
    token: str
    node: str
    """Where this process runs, for keeping copies apart."""
    silence: int
    """After so many milliseconds without a word peers try to go on without a process."""

    def await_known(self) -> None:
        """Wait until there is something to go by; called once, before the machine runs."""

    def close(self) -> None:
        """Look no more: the machine has ended."""

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """What peers may ask this process about the environment, by name."""

    def announce(self, card: Card) -> None:
        """Tell where this process can be reached."""

    def address_of(self, volume: str) -> tuple[str, int] | None:
        """Where the process on a volume can be reached."""

    def met(self, volume: str) -> None:
        """A process said itself that it runs on this volume; called from any thread."""

    def admits(self, volume: str) -> bool:
        """Whether messages from a volume are to be listened to; called from any thread."""

    def splits(self) -> tuple[Member, ...]:
        """The splits that exist."""

    def intent(self) -> Intent | None:
        """The newest intent."""

    def functions(self) -> tuple[Function, ...]:
        """The routing functions that stand beside the intent, as far as they are known here."""

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:
        """Of these volumes those that are gone for good, as far as that is known.

        What is asked first lies on the own volume. It is answered at once.
        """

    def abandoned(self) -> bool:
        """Whether the pipeline was deleted, so that there is nobody to leave anything to."""

    def dead_letters(self, stream: str) -> Path:
        """Where rows of a stream go that do not fit its schema."""

    def shown(self) -> Path | None:
        """Below this directory rows for a console go, for whoever shows them.

        None: they go to the standard output.
        """


class Register(Protocol):
    """Lead, buddy and term of the pipeline. Calls may take long."""

    def read_register(self) -> RegisterState:
        """What stands there: every swap that was answered is seen.

        Raises:
            RegisterSilent: there is no answer.
        """

    def swap_register(self, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
        """Compare and set; true if it took place, and what stands there now.

        Raises:
            Outcast: this process's own volume counts as gone.
            RegisterSilent: there is no answer; it may have taken place nevertheless.
        """


class SplitEnvironment(Environment, Register, Protocol):
    """What a split needs: splits alone have a part in the register."""


class RegisterSilent(Exception):
    """The register gave no answer; whoever asked asks again."""


class VolumeRevoked(Exception):
    """The volume of this process counts as gone: it has to end."""

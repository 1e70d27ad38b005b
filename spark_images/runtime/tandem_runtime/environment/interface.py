"""The interface of the environment, which is a directory or an API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.reports import Card
from tandem_core.model.pipeline import Pipeline
from tandem_runtime.protocol.types import Member, RegisterState


class Environment(Protocol):
    """The surroundings of a process. They are polled: no call waits long, nothing calls back."""

    pipeline: Pipeline
    uid: str
    token: str
    node: str
    """The node of this process, for keeping copies on different nodes."""
    silence: int
    """Heartbeat timeout, in milliseconds, after which peers try to continue without a process."""

    def await_known(self) -> None:
        """Wait until the first answers are known; called once, before the machine runs."""

    def close(self) -> None:
        """Stop watching: the machine has ended."""

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """Handlers of the questions about the environment that peers may ask, by name."""

    def announce(self, card: Card) -> None:
        """Publish where this process can be reached."""

    def address_of(self, volume: str) -> tuple[str, int] | None:
        """Where the process on a volume can be reached."""

    def met(self, volume: str) -> None:
        """Record that a process itself reported to run on this volume; called from any thread."""

    def admits(self, volume: str) -> bool:
        """Whether messages from a volume are accepted; called from any thread."""

    def splits(self) -> tuple[Member, ...]:
        """The splits that exist."""

    def intent(self) -> Intent | None:
        """The newest intent."""

    def functions(self) -> tuple[Function, ...]:
        """The routing functions published with the intent, as far as they are known here."""

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:
        """Those of these volumes that are known to be gone for good.

        The first call asks about volumes that the own volume names, and is answered at once.
        """

    def abandoned(self) -> bool:
        """Whether the pipeline was deleted, so that no peer is left to hand anything over to."""

    def dead_letters(self, stream: str) -> Path:
        """The file for rows of a stream that do not fit its schema."""

    def shown(self) -> Path | None:
        """The directory for rows of console sinks, which another process shows.

        None: they go to the standard output.
        """


class Register(Protocol):
    """Lead, buddy and term of the pipeline. Calls may take long."""

    def read_register(self) -> RegisterState:
        """The current value, which includes every swap that was answered.

        Raises:
            RegisterSilent: there is no answer.
        """

    def swap_register(self, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
        """Compare and set; returns whether it took place, and the value now.

        Raises:
            VolumeRevoked: this process's own volume counts as gone.
            RegisterSilent: there is no answer; it may have taken place nevertheless.
        """


class SplitEnvironment(Environment, Register, Protocol):
    """The environment of a split; only splits use the register."""


class RegisterSilent(Exception):
    """The register gave no answer; the caller retries."""


class VolumeRevoked(Exception):
    """The volume of this process counts as gone: it has to end."""

"""What a machine asks its shell to do.

A shell carries effects out one after the other. A crash may fall between any two of them, so a
machine writes before it says what it wrote.
"""

from __future__ import annotations

from typing import NamedTuple

from tandem_core.contract.intent import Function, Share
from tandem_runtime.protocol.messages.peers import CopiedState, StateCopied
from tandem_runtime.protocol.types import Header, Position, RegisterState

Key = tuple[object, ...]
"""Name of something on a volume, for instance `("chunk", lane, 7)`. A shell maps it to a file."""


class Send(NamedTuple):
    """Pass a message to the process that runs on a volume. It may be lost, late or doubled."""

    to: str
    message: object


class Select(NamedTuple):
    """Rows that belong to one label of a routing function."""

    function: Function
    label: str


class Ship(NamedTuple):
    """Send a message together with bytes of the own volume.

    The shell reads `keys`, keeps of each value what `select` names (everything if None), and
    sends the message with its `payload` replaced by the tuple of those values.
    """

    to: str
    message: object
    keys: tuple[Key, ...]
    select: Select | None = None


class ShipState(NamedTuple):
    """Send a joiner the own state: of the message's epoch and its `older` ones, and its results.

    `share` is what the joiner owns: the state is reduced to it, or a shell that cannot do so
    answers with `CopyRefused`. None is a twin, which gets everything.
    """

    to: str
    message: StateCopied
    share: Share | None


class ForgetState(NamedTuple):
    """State of epochs before this one is not needed any more. A shell may keep it for longer."""

    before: int


class Write(NamedTuple):
    """Put a value on the own volume under a key, replacing an older one, in one step."""

    key: Key
    value: object


class Erase(NamedTuple):
    """Remove a key from the own volume; no harm if it is not there."""

    key: Key


class Swap(NamedTuple):
    """Compare and set the register: only if its version is still `expected`.

    Answered by `RegisterAnswer` with the same `op`; the answer may be lost.
    """

    op: int
    expected: int
    place: RegisterState


class ReadRegister(NamedTuple):
    """Read the register. Answered by `RegisterAnswer` with the same `op`."""

    op: int


class Pull(NamedTuple):
    """Ask a source partition for rows from a position on. Answered by `SourceRows`."""

    partition: str
    position: Position


class Acknowledge(NamedTuple):
    """Tell a source partition that every row before `position` is safe."""

    partition: str
    position: Position


class Run(NamedTuple):
    """Run one epoch as one micro-batch. Answered by `BatchResult`.

    `rows` holds the payloads of the header's spans, in the order of the spans.
    """

    header: Header
    rows: tuple[object, ...]


class Finish(NamedTuple):
    """Let the batch function of an epoch return, so that Spark commits it.

    The shell answers with `BatchCommitted` once the state of that epoch is on the volume.
    """

    epoch: int


class Install(NamedTuple):
    """Make copied state the own one, in place of whatever is here. Answered by `Installed`.

    One part is a twin's, with its older epochs; several parts, each already reduced to the own
    share, come from the pairs that owned those keys before. No part means the empty state of
    epoch 0.
    """

    epoch: int
    parts: tuple[CopiedState, ...]
    older: tuple[int, ...] = ()
    """Earlier epochs whose state comes along."""


class ReadPosition(NamedTuple):
    """Read how far a slot has delivered to a sink. Answered by `SinkPosition` with the same `op`.

    A slot that has no position there gets one at `first - 1`, unless it has one meanwhile.
    """

    sink: str
    op: int
    slot: int = 0
    first: int = 1


class Deliver(NamedTuple):
    """Put a slot's part of an epoch into a sink, conditional on its position being `epoch - 1`.

    `answers` are (pair, payload), sorted by pair; none for a slot that is dealt no pair. Answered
    by `SinkPosition` with the same `op`.
    """

    sink: str
    epoch: int
    answers: tuple[tuple[str, object], ...]
    op: int
    slot: int = 0
    shared: bool = False
    """Other slots deliver the rest of the epoch."""


class SealSlot(NamedTuple):
    """Let a sink take nothing more from an ended slot, if its position is `last`.

    For ever: whoever slept through it finds the position gone. A slot that ended before it
    delivered anything may have no position yet. Answered by `SinkPosition`.
    """

    sink: str
    slot: int
    first: int
    last: int
    op: int


class SurveySink(NamedTuple):
    """Read how far a sink is with the slot that is furthest, and make nothing there.

    Answered by `SinkSurveyed` with the term of the muster for which it is asked.
    """

    sink: str
    term: int


class Happened(NamedTuple):
    """Something worth a line in status, an event and a metric."""

    event: str
    subject: str
    detail: str = ""


class Exit(NamedTuple):
    """End this process. With `wipe` its volume holds nothing of use: start again on a new one."""

    reason: str
    wipe: bool = False


Effect = (
    Send
    | Ship
    | ShipState
    | ForgetState
    | Write
    | Erase
    | Swap
    | ReadRegister
    | Pull
    | Acknowledge
    | Run
    | Finish
    | Install
    | ReadPosition
    | Deliver
    | SurveySink
    | SealSlot
    | Happened
    | Exit
)

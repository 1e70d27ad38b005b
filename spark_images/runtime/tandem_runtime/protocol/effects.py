"""Defines effects: the requests of a state machine to its shell.

A shell carries effects out in order. A crash may fall between any two of them, so a machine writes
before it reports what it wrote.
"""

from __future__ import annotations

from typing import NamedTuple

from tandem_core.contract.intent import Function, Share
from tandem_runtime.protocol.messages.peers import CopiedState, StateCopied
from tandem_runtime.protocol.types import Header, Position, RegisterState

Key = tuple[object, ...]
"""Name of a value on a volume, for instance `("chunk", lane, 7)`. A shell maps it to a file."""


class Send(NamedTuple):
    """Sends a message to the process on a volume. It may be lost, delayed or duplicated."""

    to: str
    message: object


class Select(NamedTuple):
    """Selects the rows of one label of a routing function."""

    function: Function
    label: str


class Ship(NamedTuple):
    """Sends a message together with values from the sender's volume.

    The shell reads `keys`, reduces each value to what `select` names (everything if None), and
    sends the message with its `payload` replaced by the tuple of those values.
    """

    to: str
    message: object
    keys: tuple[Key, ...]
    select: Select | None = None


class ShipState(NamedTuple):
    """Sends a joiner this replica's state: of the message's epoch, its `older` ones, and results.

    `share` is the joiner's share of the keys: the shell reduces the state to it, or answers with
    `CopyRefused` if it cannot, and a request meanwhile with `CopyUnderWay`. None stands for a twin,
    which gets everything.
    """

    to: str
    message: StateCopied
    share: Share | None


class ForgetState(NamedTuple):
    """Permits to delete the state of epochs before this one. A shell may keep it for longer."""

    before: int


class KeepState(NamedTuple):
    """Keeps the state of these epochs, which new pairs copy, until other epochs are named.

    A shell that deletes old state by itself has to make sure of them; else `ForgetState` does.
    """

    epochs: tuple[int, ...]


class Write(NamedTuple):
    """Writes a value to the volume under a key, atomically replacing an older one."""

    key: Key
    value: object


class Erase(NamedTuple):
    """Deletes a key from the volume, if it exists."""

    key: Key


class Swap(NamedTuple):
    """Writes the register if its version is still `expected` (compare-and-set).

    Answered by `RegisterAnswer` with the same `op`; the answer may be lost.
    """

    op: int
    expected: int
    place: RegisterState


class ReadRegister(NamedTuple):
    """Reads the register. Answered by `RegisterAnswer` with the same `op`."""

    op: int


class Pull(NamedTuple):
    """Requests rows of a source partition from a position on. Answered by `SourceRows`."""

    partition: str
    position: Position


class Acknowledge(NamedTuple):
    """Acknowledges every row before `position` to a source partition."""

    partition: str
    position: Position


class Run(NamedTuple):
    """Runs one epoch as one micro-batch. Answered by `BatchResult`.

    `rows` holds the payloads of the header's spans, in the order of the spans.
    """

    header: Header
    rows: tuple[object, ...]


class Finish(NamedTuple):
    """Lets the batch function of an epoch return, so that Spark commits it.

    The shell answers with `BatchCommitted` once the state of that epoch is on the volume.
    """

    epoch: int


class Install(NamedTuple):
    """Installs copied state in place of the state on the volume. Answered by `Installed`.

    Parts with a `share` come from the pairs that owned its keys before: each is already reduced to
    it, and the shell unites them. Without one, the only part is a twin's, with its older epochs. No
    part means the empty state of epoch 0.
    """

    epoch: int
    parts: tuple[CopiedState, ...]
    older: tuple[int, ...] = ()
    """Earlier epochs whose state is part of the copy."""
    share: Share | None = None


class ReadPosition(NamedTuple):
    """Reads how far a slot has delivered to a sink. Answered by `SinkPosition` with the same `op`.

    If the slot has no position there, the sink creates one at `first - 1`.
    """

    sink: str
    op: int
    slot: int = 0
    first: int = 1


class Deliver(NamedTuple):
    """Delivers a slot's part of an epoch to a sink, if its position there is `epoch - 1`.

    `answers` are (pair, payload), sorted by pair; empty for a slot without pairs. Answered by
    `SinkPosition` with the same `op`.
    """

    sink: str
    epoch: int
    answers: tuple[tuple[str, object], ...]
    op: int
    slot: int = 0
    shared: bool = False
    """Whether other slots deliver the rest of the epoch."""


class SealSlot(NamedTuple):
    """Seals an ended slot at a sink for good, if its position is `last`.

    A merge that was paused meanwhile can deliver nothing more. A slot that ended before its first
    delivery may have no position yet. Answered by `SinkPosition`.
    """

    sink: str
    slot: int
    first: int
    last: int
    op: int


class SurveySink(NamedTuple):
    """Reads the position of a sink's most advanced slot, and creates nothing there.

    Answered by `SinkSurveyed` with the term of the rebuild that asks for it.
    """

    sink: str
    term: int


class Happened(NamedTuple):
    """Reports something for status, events, logs and metrics."""

    event: str
    subject: str
    detail: str = ""
    epoch: int | None = None
    """The epoch that the detail, or for `TwinsDiffer` the subject, names."""
    term: int | None = None
    """The term of the lead that reports it."""

    def fields(self) -> dict[str, object]:
        """Returns the fields that have a value, for logs."""
        named = self._asdict().items()
        return {name: value for name, value in named if value not in {None, ""}}


class Exit(NamedTuple):
    """Ends this process. With `wipe` its volume is of no more use: restart on a new one."""

    reason: str
    wipe: bool = False


Effect = (
    Send
    | Ship
    | ShipState
    | ForgetState
    | KeepState
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

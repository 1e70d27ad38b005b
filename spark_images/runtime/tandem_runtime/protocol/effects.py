"""What a machine asks its shell to do.

A shell carries effects out one after the other. A crash may fall between any two of them, so a
machine writes before it says what it wrote.
"""

from __future__ import annotations

from typing import NamedTuple

from tandem_runtime.protocol.data import Header, Place, Position

Key = tuple[object, ...]
"""Name of something on a volume, for instance `("chunk", lane, 7)`. A shell maps it to a file."""


class Send(NamedTuple):
    """Pass a message to the process that runs on a volume. It may be lost, late or doubled."""

    to: str
    message: object


class Ship(NamedTuple):
    """Send a message together with bytes of the own volume.

    The shell reads `keys`, keeps of each value what `select` names (everything if None), and
    sends the message with its `payload` replaced by the tuple of those values.
    """

    to: str
    message: object
    keys: tuple[Key, ...]
    select: object = None


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
    place: Place


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

    The shell answers with `BatchCommitted` once `("checkpoint", epoch)` is on the volume.
    """

    epoch: int


class Install(NamedTuple):
    """Make copied state the own checkpoint of an epoch. Answered by `Installed`.

    One part is a twin's tree; several parts, each already reduced to the own keys, come from the
    pairs that owned those keys before. No part at all means the empty state of epoch 0.
    """

    epoch: int
    parts: tuple[object, ...]


class ReadPosition(NamedTuple):
    """Read how far a sink has been delivered to. Answered by `SinkPosition` with the same `op`."""

    sink: str
    op: int


class Deliver(NamedTuple):
    """Put one epoch into a sink, conditional on its position being `epoch - 1`.

    `answers` are (pair, payload), sorted by pair. Answered by `SinkPosition` with the same `op`.
    """

    sink: str
    epoch: int
    answers: tuple[tuple[str, object], ...]
    op: int


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
    | Happened
    | Exit
)

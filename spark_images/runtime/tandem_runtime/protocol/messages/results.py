"""Defines the messages that transfer rows, state and results."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from tandem_core.contract.intent import Function, Generation, Share
from tandem_core.contract.records import Record, Tagged
from tandem_runtime.protocol.types import UNDEFINED, Definition, Header, Span


class Fetch(Tagged):
    """Replica to split: requests its share of some chunks."""

    span: Span
    share: Share


class WantFunction(Tagged):
    """Split to lead: requests a routing function that a `Fetch` names and the split lacks."""

    digest: str


class FunctionTold(Tagged):
    """Lead to split: the routing function that it requested."""

    function: Function


class FetchAnswer(StrEnum):
    """Outcome of a fetch."""

    ROWS = "rows"
    NO_ROWS = "no rows"
    NOT_YET = "not yet"
    GONE = "gone"
    NOT_HERE = "not here"


class Fetched(Tagged):
    """Split to replica: answers a `Fetch`. With `ROWS` the payload has one value for each chunk."""

    span: Span
    answer: FetchAnswer
    payload: Any = None


class CopyState(Tagged):
    """Joiner to holder: requests its share of the state at an epoch (None: the last one)."""

    pair: str
    share: Share | None
    epoch: int | None
    definition: Definition = UNDEFINED
    """What the joiner is; a holder of something else refuses."""


class Offer(Record):
    """Describes a result in an outbox."""

    epoch: int
    size: int
    digest: int
    header: str = ""
    """Digest of the epoch's header: a result is valid only in the history it was computed in."""


class CopiedState(NamedTuple):
    """Payload of `StateCopied`, opaque to the protocol."""

    state: object
    """State of the epoch and of the older ones."""
    results: tuple[object, ...] = ()
    """Results of the outbox, in the order of `StateCopied.outbox`."""


class StateCopied(Tagged):
    """Holder to joiner: its state; the payload is a `CopiedState`.

    It includes the epoch's header and generation, which are in Spark's offset, and a twin's older
    state, since another pair may have to be built from it.
    """

    pair: str
    epoch: int
    header: Header | None
    generation: Generation | None
    outbox: tuple[Offer, ...]
    older: tuple[int, ...]
    payload: Any = None
    older_headers: tuple[Header, ...] = ()
    older_generations: tuple[Generation, ...] = ()
    """Headers of the `older` epochs, and the generations that they name."""


class CopyRefused(Tagged):
    """Holder to joiner: it cannot copy its state, or not at that epoch."""

    pair: str
    epoch: int | None = None
    """The epoch that was requested."""
    reason: str = ""


class CopyUnderWay(Tagged):
    """Holder to joiner: it prepares or sends the requested share of its state, which takes time."""

    pair: str
    epoch: int


class Offers(Tagged):
    """Replica to merge: the results in its outbox."""

    pair: str
    offers: tuple[Offer, ...]


class Want(Tagged):
    """Merge to replica: requests the results of some epochs.

    It does not tell what is delivered and may be dropped: the lead does, which knows every slot.
    """

    epochs: tuple[int, ...]


class Answer(Tagged):
    """Replica to merge: its result of an epoch."""

    pair: str
    epoch: int
    digest: int
    payload: Any = None
    header: str = ""
    """Digest of the epoch's header."""

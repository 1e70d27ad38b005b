"""Rows, state and results: what replicas ask of splits, of each other, and merges of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from tandem_core.contract.intent import Function, Generation, Share
from tandem_core.contract.records import Record, Tagged
from tandem_runtime.protocol.types import Header, Span


class Fetch(Tagged):
    """Replica to a split: these chunks, as far as they concern my keys."""

    span: Span
    share: Share


class WantFunction(Tagged):
    """A split to the lead: a replica asked by a routing function that is not known here."""

    digest: str


class FunctionTold(Tagged):
    """The lead to a split: the routing function that it asked for."""

    function: Function


class FetchAnswer(StrEnum):
    """The five answers to a fetch."""

    ROWS = "rows"
    NO_ROWS = "no rows"
    NOT_YET = "not yet"
    GONE = "gone"
    NOT_HERE = "not here"


class Fetched(Tagged):
    """A split to a replica. With *rows* the payload holds a value for each chunk of the span."""

    span: Span
    answer: FetchAnswer
    payload: Any = None


class CopyState(Tagged):
    """A joiner to a holder: your state at this epoch (None: your last), as far as my keys go."""

    pair: str
    share: Share | None
    epoch: int | None


class Offer(Record):
    """A result in an outbox: its epoch, its size, its digest, and the header that it answers."""

    epoch: int
    size: int
    digest: int
    header: str = ""
    """Digest of that header: a result counts only in the history that it was computed in."""


class CopiedState(NamedTuple):
    """What comes with `StateCopied`, in the shell's own terms."""

    state: object
    """The state of the epoch and of the older ones."""
    results: tuple[object, ...] = ()
    """The results in the outbox, in the order in which the message names them."""


class StateCopied(Tagged):
    """A holder to a joiner; the payload is a `CopiedState`.

    The epoch's header and generation come along: they stand in Spark's offset. A twin's older
    state comes along too: another pair may have to be built from it.
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
    """The headers of `older` epochs, and the generations that they name."""


class CopyRefused(Tagged):
    """A holder to a joiner: not from me, or not at that epoch."""

    pair: str


class Offers(Tagged):
    """A replica to a merge: what is in my outbox."""

    pair: str
    offers: tuple[Offer, ...]


class Want(Tagged):
    """A merge to a replica: which epochs I want now.

    How far is delivered, and what may be dropped, only the lead says: it knows every slot.
    """

    epochs: tuple[int, ...]


class Answer(Tagged):
    """A replica to a merge: its result of an epoch."""

    pair: str
    epoch: int
    digest: int
    payload: Any = None
    header: str = ""
    """Digest of the header that it answers."""

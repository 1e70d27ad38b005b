"""Defines messages between processes, and from a shell to its state machine.

Splits, replicas and merges *report* their whole state to the lead; the lead answers each with its
whole *view* (`reports.py`). Rows, state and results are in `results.py`. A message with a
`payload` carries bytes (`effects.Ship`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.records import Tagged
from tandem_runtime.protocol.log.entries import Entry
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.reports import (
    LaneReport,
    LaneView,
    MergeReport,
    MergeView,
    NotLead,
    Outdated,
    Owned,
    ReplicaReport,
    ReplicaView,
    SealedCopy,
    SplitReport,
    SplitView,
    Standing,
    Version,
)
from tandem_runtime.protocol.messages.results import (
    Answer,
    CopiedState,
    CopyRefused,
    CopyState,
    CopyUnderWay,
    Fetch,
    FetchAnswer,
    Fetched,
    FunctionTold,
    Offer,
    Offers,
    StateCopied,
    Want,
    WantFunction,
)
from tandem_runtime.protocol.types import LaneId, Member, Position, RegisterState

__all__ = [
    "Answer",
    "BatchCommitted",
    "BatchResult",
    "ChunkCopied",
    "CopiedState",
    "CopyChunk",
    "CopyEntry",
    "CopyRefused",
    "CopyState",
    "CopyUnderWay",
    "Deposed",
    "EntryCopied",
    "Fetch",
    "FetchAnswer",
    "Fetched",
    "FillLog",
    "FunctionTold",
    "Installed",
    "LaneReport",
    "LaneView",
    "MergeReport",
    "MergeView",
    "NeedFill",
    "NewIntent",
    "NotLead",
    "Offer",
    "Offers",
    "Outdated",
    "Owned",
    "PeerMessage",
    "RegisterAnswer",
    "ReplicaReport",
    "ReplicaView",
    "SealedCopy",
    "SinkPosition",
    "SinkSurveyed",
    "SourceRows",
    "SparkUp",
    "SplitReport",
    "SplitView",
    "SplitsDiscovered",
    "Standing",
    "StateCopied",
    "TakeLead",
    "Terminate",
    "Version",
    "VolumeGone",
    "Want",
    "WantFunction",
]

# --- between the owner of a log and its buddy -------------------------------------------------


class CopyChunk(Tagged):
    """Owner to buddy: copies chunk `number` of a lane, which is trimmed through `base`.

    `version` is that of the owner's newest view: an older view, from a deposed lead that does not
    know this lane yet, must not make the buddy drop it.
    """

    lane: LaneId
    fence: tuple[int, int]
    version: Version
    base: int
    number: int
    payload: Any = None


class ChunkCopied(Tagged):
    """Buddy to owner: acknowledges the chunks of a lane through this one."""

    lane: LaneId
    fence: tuple[int, int]
    through: int


class FillLog(Tagged):
    """Lead to a new buddy: the header log's snapshot, which replaces the buddy's copy."""

    fence: tuple[int, int]
    through: int
    log_state: LogState = msgspec.field(name="book")


class CopyEntry(Tagged):
    """Lead to buddy: copies entry `number` of the header log; number 0 is a heartbeat."""

    fence: tuple[int, int]
    number: int
    entry: Entry | None
    published: int


class EntryCopied(Tagged):
    """Buddy to lead: acknowledges the header log through this entry."""

    fence: tuple[int, int]
    through: int


class NeedFill(Tagged):
    """Buddy to lead: requests a snapshot, since it has no copy under this fence."""

    fence: tuple[int, int]


class Deposed(Tagged):
    """Tells the lead of a lower term that a higher term exists."""

    term: int


class TakeLead(Tagged):
    """Lead to buddy: hands leadership over, because the lead terminates."""

    term: int


PeerMessage = (
    CopyChunk
    | ChunkCopied
    | FillLog
    | CopyEntry
    | EntryCopied
    | NeedFill
    | Deposed
    | TakeLead
    | SplitReport
    | SplitView
    | ReplicaReport
    | ReplicaView
    | MergeReport
    | MergeView
    | NotLead
    | Outdated
    | Fetch
    | Fetched
    | WantFunction
    | FunctionTold
    | CopyState
    | StateCopied
    | CopyRefused
    | CopyUnderWay
    | Offers
    | Want
    | Answer
)
"""Messages between processes, except the two of a rebuild (`rebuild.py`)."""

# --- from the shell ---------------------------------------------------------------------------


class RegisterAnswer(Tagged):
    """Answer to `Swap` or `ReadRegister`: whether it swapped, and the register's content now."""

    op: int
    swapped: bool
    place: RegisterState


class SourceRows(Tagged):
    """Answer to `Pull`: rows from `position` up to `end`, in arrival order.

    `ended`: nothing comes after `end`. `forgotten`: the source no longer has `position`.
    `unreadable`: the source cannot be read now; the request stays open. `rejected`: number of rows
    and files rejected on the way.
    """

    partition: str
    position: Position
    end: Position
    size: int
    event_time: int
    ended: bool
    forgotten: bool
    payload: Any = None
    rows: int = 0
    unreadable: bool = False
    rejected: int = 0


class BatchResult(Tagged):
    """Spark has computed an epoch; its result has to be stored before Spark commits."""

    epoch: int
    size: int
    digest: int
    payload: Any = None


class BatchCommitted(Tagged):
    """Spark has committed an epoch; its state is on the volume."""

    epoch: int


class SparkUp(Tagged):
    """Spark has started and accepts epochs."""


class Installed(Tagged):
    """Copied state is verified and installed on the volume as the checkpoint of an epoch."""

    epoch: int


class SinkPosition(Tagged):
    """Answer to `ReadPosition`, `Deliver` and `SealSlot`: the slot's position at the sink."""

    sink: str
    position: int
    op: int
    slot: int = 0
    sealed: bool = False


class SinkSurveyed(Tagged):
    """Answer to `SurveySink`: the last epoch that the sink has of any slot."""

    sink: str
    term: int
    furthest: int


class SplitsDiscovered(Tagged):
    """All splits that exist now, according to discovery."""

    members: tuple[Member, ...]


class NewIntent(Tagged):
    """The operator's intent has changed. It may arrive late, repeated or out of order.

    `functions` are the routing functions that its generations name, as far as this process has
    them.
    """

    intent: Intent
    functions: tuple[Function, ...] = ()


class VolumeGone(Tagged):
    """A volume is gone for good: its pod, or on a laptop its directory, no longer exists."""

    volume: str


class Terminate(Tagged):
    """The process is asked to terminate gracefully (SIGTERM)."""

"""What processes tell each other, and what a shell tells a machine.

Splits, replicas and merges *report* their whole state to the lead; the lead answers with its
whole *view* for that one (`reports.py`). Rows, state and results are in `results.py`. A message
with a `payload` carries bytes (`effects.Ship`).
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
    """Owner to buddy: chunk `number` of a lane; `base` is what the lane has forgotten.

    `version` is of the newest view the owner knows: an older view, of a deposed lead that does
    not know this lane yet, must not make the buddy forget it.
    """

    lane: LaneId
    fence: tuple[int, int]
    version: Version
    base: int
    number: int
    payload: Any = None


class ChunkCopied(Tagged):
    """Buddy to owner: I hold the lane through this chunk."""

    lane: LaneId
    fence: tuple[int, int]
    through: int


class FillLog(Tagged):
    """Lead to a new buddy: the header log's snapshot, which replaces whatever is there."""

    fence: tuple[int, int]
    through: int
    log_state: LogState = msgspec.field(name="book")


class CopyEntry(Tagged):
    """Lead to buddy: entry `number` of the header log; number 0 is a sign of life."""

    fence: tuple[int, int]
    number: int
    entry: Entry | None
    published: int


class EntryCopied(Tagged):
    """Buddy to lead: I hold the header log through this entry."""

    fence: tuple[int, int]
    through: int


class NeedFill(Tagged):
    """Buddy to lead: I have no copy under this fence."""

    fence: tuple[int, int]


class Deposed(Tagged):
    """Whoever knows a higher term, to a lead of a lower one."""

    term: int


class TakeLead(Tagged):
    """A lead that leaves, to its buddy: take over now."""

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
    | Offers
    | Want
    | Answer
)
"""What travels between processes, apart from the two messages of a rebuild (`rebuild.py`)."""

# --- from the shell ---------------------------------------------------------------------------


class RegisterAnswer(Tagged):
    """Answer to `Swap` or `ReadRegister`: did the swap happen, and what stands there now."""

    op: int
    swapped: bool
    place: RegisterState


class SourceRows(Tagged):
    """Answer to `Pull`: rows from `position` up to `end`, in arrival order.

    `ended`: nothing comes after `end`. `forgotten`: the source no longer has `position`.
    `unreadable`: nobody can know now; the question stays open. `rejected`: how much was put aside.
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
    """Spark has computed an epoch: its result is about to be kept, nothing is committed yet."""

    epoch: int
    size: int
    digest: int
    payload: Any = None


class BatchCommitted(Tagged):
    """Spark has committed an epoch: its state is on the volume."""

    epoch: int


class SparkUp(Tagged):
    """Spark can be given epochs from now on."""


class Installed(Tagged):
    """Copied state has been verified and stands on the volume as an epoch's checkpoint."""

    epoch: int


class SinkPosition(Tagged):
    """Answer to `ReadPosition`, `Deliver` and `SealSlot`: the position when the sink answered."""

    sink: str
    position: int
    op: int
    slot: int = 0
    sealed: bool = False


class SinkSurveyed(Tagged):
    """Answer to `SurveySink`: the last epoch that the sink has of whichever slot."""

    sink: str
    term: int
    furthest: int


class SplitsDiscovered(Tagged):
    """The splits that exist now, as discovery knows them."""

    members: tuple[Member, ...]


class NewIntent(Tagged):
    """The operator's document changed. It may come late, repeated, or in the wrong order.

    `functions` are the routing functions that its generations name, as far as they are known here.
    """

    intent: Intent
    functions: tuple[Function, ...] = ()


class VolumeGone(Tagged):
    """A volume is gone for good: no such pod, or on a laptop no such directory."""

    volume: str


class Terminate(Tagged):
    """The process is asked to leave in good order (SIGTERM)."""

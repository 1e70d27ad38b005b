"""The state machines of the protocol: what each can be, and the moves that it can make.

A state is one value, never guessed from several. Every change of it goes through the table of its
machine; a move that is not there raises `IllegalMove`, whoever asked for it. States travel and lie
on volumes as their words. `docs/protocol/states.md` draws the tables.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from tandem_core.model.states import SeatState

S = TypeVar("S", bound=StrEnum)


class IllegalMove(Exception):
    """Something was about to change in a way that its life does not know."""

    def __init__(self, machine: str, before: object, wanted: object, subject: object) -> None:
        super().__init__(f"{machine} {subject}: {wanted}, while {before or 'not there'}")
        self.machine = machine
        self.before = before
        self.wanted = wanted
        """The state that it was to have, or what was to happen to it."""
        self.subject = subject


class Transition(NamedTuple, Generic[S]):
    """A legal move. None: it is not there, before its beginning and after its end."""

    before: S | None
    after: S | None
    cause: str
    """What happens; where the header log tells of it, the kind of the record."""
    note: str = ""


class Lifecycle(Generic[S]):
    """The table of a machine's legal moves."""

    __slots__ = ("_by_cause", "_legal", "machine", "moves")

    def __init__(self, machine: str, *moves: Transition[S]) -> None:
        self.machine = machine
        self.moves = moves
        self._legal = frozenset((move.before, move.after) for move in moves)
        self._by_cause = {(move.cause, move.before): move.after for move in moves}

    def check(self, before: S | None, after: S | None, subject: object) -> None:
        """Refuse a move that is not in the table.

        Raises:
            IllegalMove: it is not.
        """
        if (before, after) not in self._legal:
            raise IllegalMove(self.machine, before, after, subject)

    def after(self, cause: str, before: S | None, subject: object) -> S | None:
        """The state that a cause leads to.

        Raises:
            IllegalMove: it cannot happen in this state.
        """
        key = (cause, before)
        if key not in self._by_cause:
            raise IllegalMove(self.machine, before, cause, subject)
        return self._by_cause[key]


# --- a source partition -----------------------------------------------------------------------


class PartitionState(StrEnum):
    """What an owner says of a source partition. Only an owner says it; silence says nothing."""

    ACTIVE = "active"
    IDLE = "idle"
    RELEASED = "released"
    ENDED = "ended"

    @property
    def is_read(self) -> bool:
        """Does its owner want more rows of it? Else it says nothing more of it."""
        return self in _READ


_READ = frozenset({PartitionState.ACTIVE, PartitionState.IDLE})

PARTITION: Lifecycle[PartitionState] = Lifecycle(
    "partition",
    Transition(None, PartitionState.ACTIVE, "PartitionOwned"),
    Transition(
        PartitionState.ACTIVE, PartitionState.IDLE, "the source says for long that it has no rows"
    ),
    Transition(PartitionState.IDLE, PartitionState.ACTIVE, "rows came, or it cannot be read"),
    Transition(PartitionState.ACTIVE, PartitionState.RELEASED, "its owner lets it go"),
    Transition(PartitionState.IDLE, PartitionState.RELEASED, "its owner lets it go"),
    Transition(
        PartitionState.RELEASED,
        PartitionState.ACTIVE,
        "PartitionOwned",
        "by another lane, or again",
    ),
    Transition(PartitionState.ACTIVE, PartitionState.ENDED, "nothing will come any more"),
    Transition(PartitionState.IDLE, PartitionState.ENDED, "nothing will come any more"),
)


# --- a lane -----------------------------------------------------------------------------------


class LaneState(StrEnum):
    """Whether a lane takes rows, as recorded."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


LANE: Lifecycle[LaneState] = Lifecycle(
    "lane",
    Transition(None, LaneState.OPEN, "LaneOpened"),
    Transition(None, LaneState.CLOSED, "the log was rebuilt, and its headers name it"),
    Transition(LaneState.OPEN, LaneState.OPEN, "BuddyChanged"),
    Transition(LaneState.OPEN, LaneState.CLOSING, "LaneClosing"),
    Transition(LaneState.CLOSING, LaneState.OPEN, "LaneResumed"),
    Transition(LaneState.CLOSING, LaneState.CLOSED, "LaneClosed"),
    Transition(LaneState.CLOSED, None, "wholly trimmed, and no partition waits for it"),
)


# --- a seat -----------------------------------------------------------------------------------


JOINING = frozenset({SeatState.JOINING, SeatState.JOINING_CALLED})
CALLED = frozenset({SeatState.JOINING_CALLED, SeatState.VERIFIED_CALLED})

SEAT: Lifecycle[SeatState] = Lifecycle(
    "seat",
    Transition(None, SeatState.JOINING, "Seated"),
    Transition(None, SeatState.VERIFIED, "the log was rebuilt, and its holder answered"),
    Transition(SeatState.JOINING, SeatState.JOINING, "Seated", "in the place of a silent one"),
    Transition(
        SeatState.JOINING_CALLED, SeatState.JOINING, "Seated", "in the place of a silent one"
    ),
    Transition(SeatState.LAPSED, SeatState.JOINING, "Seated"),
    Transition(SeatState.JOINING, SeatState.VERIFIED, "Verified"),
    Transition(SeatState.JOINING_CALLED, SeatState.VERIFIED, "Verified"),
    Transition(SeatState.JOINING, SeatState.JOINING_CALLED, "LapseCalled"),
    Transition(SeatState.VERIFIED, SeatState.VERIFIED_CALLED, "LapseCalled"),
    Transition(SeatState.JOINING_CALLED, SeatState.JOINING, "LapseDropped", "or its twin vacated"),
    Transition(
        SeatState.VERIFIED_CALLED, SeatState.VERIFIED, "LapseDropped", "or its twin vacated"
    ),
    Transition(SeatState.JOINING_CALLED, SeatState.LAPSED, "Lapsed"),
    Transition(SeatState.VERIFIED_CALLED, SeatState.LAPSED, "Lapsed"),
    Transition(SeatState.VERIFIED, SeatState.LAPSED, "Lapsed", "rows that it needs are gone"),
    *(Transition(state, None, "Vacated", "or its pair let go") for state in SeatState),
)


# --- a merge slot -----------------------------------------------------------------------------


class SlotState(StrEnum):
    """Whether a merge slot delivers, as recorded."""

    OPEN = "open"
    ENDED = "ended"
    SEALED = "sealed"
    """At every sink. The log forgets it, and its number is never used again."""


SLOT: Lifecycle[SlotState] = Lifecycle(
    "slot",
    Transition(None, SlotState.OPEN, "SlotOpened"),
    Transition(None, SlotState.ENDED, "the log was rebuilt, and a merge knew of it"),
    Transition(SlotState.OPEN, SlotState.ENDED, "SlotEnded"),
    Transition(SlotState.ENDED, SlotState.SEALED, "SlotSealed"),
)


# --- a replica --------------------------------------------------------------------------------


class ReplicaLife(StrEnum):
    """What the process of a replica is at."""

    WAITING = "waiting"
    """Without state; nobody has said where to copy it from."""
    COPYING = "copying"
    INSTALLING = "installing"
    """Its first state is complete and is being verified."""
    BOOTING = "booting"
    """It has its state and waits for Spark."""
    IDLE = "idle"
    """It could run an epoch, and there is none to run."""
    SKIPPING = "skipping"
    """It has missed much and copies its twin's state instead of computing it."""
    REPLACING = "replacing"
    """Its twin's state is complete and takes the place of its own."""
    FETCHING = "fetching"
    """It has asked for the rows of the next epoch."""
    RUNNING = "running"
    STOPPING = "stopping"
    """The epoch that runs is its last one: it was asked to leave."""
    SUPERSEDED = "superseded"
    """A rebuilt log has cut the epoch that runs anew: its result must not be committed."""
    COMMITTING = "committing"
    """The result is in the outbox, Spark commits."""
    FINISHING = "finishing"
    """The same, and it was asked to leave."""
    ENDED = "ended"

    @property
    def has_state(self) -> bool:
        """Is there a whole state on its volume?"""
        return self not in _WITHOUT_STATE

    @property
    def copies(self) -> bool:
        """Is a state being copied or installed, the first one or its twin's?"""
        return self in _COPIES

    @property
    def has_batch(self) -> bool:
        """Has Spark an epoch that it has not committed?"""
        return self in _HAS_BATCH


_WITHOUT_STATE = frozenset(
    {ReplicaLife.WAITING, ReplicaLife.COPYING, ReplicaLife.INSTALLING, ReplicaLife.ENDED}
)
_COPIES = _WITHOUT_STATE - {ReplicaLife.ENDED} | {ReplicaLife.SKIPPING, ReplicaLife.REPLACING}
_HAS_BATCH = frozenset(
    {
        ReplicaLife.RUNNING,
        ReplicaLife.STOPPING,
        ReplicaLife.SUPERSEDED,
        ReplicaLife.COMMITTING,
        ReplicaLife.FINISHING,
    }
)

ASKS = frozenset({ReplicaLife.COPYING, ReplicaLife.SKIPPING})
"""Holders are asked for state."""

MAY_WORK = frozenset({ReplicaLife.IDLE, ReplicaLife.FETCHING, ReplicaLife.SKIPPING})
"""The next epoch may be run, or its rows asked for."""

RESULT_DUE = frozenset({ReplicaLife.RUNNING, ReplicaLife.STOPPING})
"""Spark has an epoch whose result may be kept."""

REPLICA: Lifecycle[ReplicaLife] = Lifecycle(
    "replica",
    Transition(None, ReplicaLife.WAITING, "starts on an empty volume"),
    Transition(None, ReplicaLife.BOOTING, "starts on its volume"),
    Transition(None, ReplicaLife.IDLE, "starts on its volume, Spark is up"),
    Transition(ReplicaLife.WAITING, ReplicaLife.COPYING, "the lead names a holder"),
    Transition(ReplicaLife.WAITING, ReplicaLife.INSTALLING, "the lead says, from nothing"),
    Transition(
        ReplicaLife.COPYING, ReplicaLife.INSTALLING, "all parts came, or from nothing after all"
    ),
    Transition(ReplicaLife.INSTALLING, ReplicaLife.BOOTING, "Installed before SparkUp"),
    Transition(ReplicaLife.INSTALLING, ReplicaLife.IDLE, "Installed"),
    Transition(ReplicaLife.BOOTING, ReplicaLife.IDLE, "SparkUp"),
    Transition(ReplicaLife.IDLE, ReplicaLife.SKIPPING, "its twin is far ahead"),
    Transition(ReplicaLife.IDLE, ReplicaLife.FETCHING, "Fetch"),
    Transition(ReplicaLife.IDLE, ReplicaLife.RUNNING, "Run, an epoch without chunks"),
    Transition(ReplicaLife.FETCHING, ReplicaLife.SKIPPING, "its twin is far ahead"),
    Transition(ReplicaLife.FETCHING, ReplicaLife.IDLE, "a rebuilt log cut the epoch anew"),
    Transition(ReplicaLife.FETCHING, ReplicaLife.RUNNING, "Run, all rows came"),
    Transition(ReplicaLife.SKIPPING, ReplicaLife.REPLACING, "the copy came"),
    Transition(ReplicaLife.SKIPPING, ReplicaLife.IDLE, "no longer worth waiting for"),
    Transition(ReplicaLife.REPLACING, ReplicaLife.IDLE, "Installed"),
    Transition(ReplicaLife.RUNNING, ReplicaLife.COMMITTING, "BatchResult"),
    Transition(ReplicaLife.RUNNING, ReplicaLife.STOPPING, "Terminate"),
    Transition(ReplicaLife.RUNNING, ReplicaLife.SUPERSEDED, "a rebuilt log cut the epoch anew"),
    Transition(ReplicaLife.STOPPING, ReplicaLife.FINISHING, "BatchResult"),
    Transition(ReplicaLife.STOPPING, ReplicaLife.SUPERSEDED, "a rebuilt log cut the epoch anew"),
    Transition(ReplicaLife.COMMITTING, ReplicaLife.IDLE, "BatchCommitted"),
    Transition(ReplicaLife.COMMITTING, ReplicaLife.FINISHING, "Terminate"),
    *(Transition(life, ReplicaLife.ENDED, "Exit") for life in tuple(ReplicaLife)[:-1]),
)


# --- an owner and its follower ----------------------------------------------------------------


class Bond(StrEnum):
    """How the owner of a log stands to its follower."""

    ALONE = "alone"
    FILLING = "filling"
    JOINING = "joining"
    PAIRED = "paired"
    LEAVING = "leaving"


BOND: Lifecycle[Bond] = Lifecycle(
    "bond",
    Transition(None, Bond.ALONE, "a new log"),
    Transition(None, Bond.PAIRED, "a new lane, recorded with its buddy"),
    Transition(Bond.ALONE, Bond.FILLING, "a follower is chosen, new fence"),
    Transition(Bond.FILLING, Bond.ALONE, "silent"),
    Transition(Bond.FILLING, Bond.JOINING, "has everything"),
    Transition(Bond.JOINING, Bond.PAIRED, "recorded as buddy"),
    Transition(Bond.JOINING, Bond.LEAVING, "silent"),
    Transition(Bond.PAIRED, Bond.LEAVING, "silent, gone, or leaves"),
    Transition(Bond.LEAVING, Bond.ALONE, "recorded without a buddy"),
)

LIFECYCLES: tuple[Lifecycle[Any], ...] = (
    PARTITION,
    LANE,
    SEAT,
    SLOT,
    REPLICA,
    BOND,
)

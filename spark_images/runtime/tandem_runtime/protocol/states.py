"""Defines the protocol's state machines: their states and legal transitions.

A state is one explicit value, never inferred from several flags. Every change is checked against
the machine's table; a transition that is not listed raises `IllegalMove`. Messages and volumes
carry states as their string values. `docs/protocol/states.md` draws the tables.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from tandem_core.model.lifecycle import Lifecycle, Transition
from tandem_core.model.states import SeatState

# --- a source partition -----------------------------------------------------------------------


class PartitionState(StrEnum):
    """State of a source partition. Only its owner reports it; a silent owner changes nothing."""

    ACTIVE = "active"
    IDLE = "idle"
    RELEASED = "released"
    ENDED = "ended"

    @property
    def is_read(self) -> bool:
        """Whether its owner keeps reading it; if not, the owner reports no further change."""
        return self in _READ


_READ = frozenset({PartitionState.ACTIVE, PartitionState.IDLE})

PARTITION: Lifecycle[PartitionState] = Lifecycle(
    "partition",
    Transition(None, PartitionState.ACTIVE, "PartitionOwned"),
    Transition(
        PartitionState.ACTIVE, PartitionState.IDLE, "the source is empty for the idle timeout"
    ),
    Transition(PartitionState.IDLE, PartitionState.ACTIVE, "rows arrive, or it cannot be read"),
    Transition(PartitionState.ACTIVE, PartitionState.RELEASED, "its owner releases it"),
    Transition(PartitionState.IDLE, PartitionState.RELEASED, "its owner releases it"),
    Transition(
        PartitionState.RELEASED,
        PartitionState.ACTIVE,
        "PartitionOwned",
        "by another lane, or by the same one again",
    ),
    Transition(PartitionState.ACTIVE, PartitionState.ENDED, "the source has ended"),
    Transition(PartitionState.IDLE, PartitionState.ENDED, "the source has ended"),
)


# --- a lane -----------------------------------------------------------------------------------


class LaneState(StrEnum):
    """State of a lane, as recorded in the header log."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


LANE: Lifecycle[LaneState] = Lifecycle(
    "lane",
    Transition(None, LaneState.OPEN, "LaneOpened"),
    Transition(None, LaneState.CLOSED, "the log is rebuilt from headers that name it"),
    Transition(LaneState.OPEN, LaneState.OPEN, "BuddyChanged"),
    Transition(LaneState.OPEN, LaneState.CLOSING, "LaneClosing"),
    Transition(LaneState.CLOSING, LaneState.OPEN, "LaneResumed"),
    Transition(LaneState.CLOSING, LaneState.CLOSED, "LaneClosed"),
    Transition(LaneState.CLOSED, None, "fully trimmed, and no partition is assigned to it"),
)


# --- a seat -----------------------------------------------------------------------------------


JOINING = frozenset({SeatState.JOINING, SeatState.JOINING_CALLED})
CALLED = frozenset({SeatState.JOINING_CALLED, SeatState.VERIFIED_CALLED})

SEAT: Lifecycle[SeatState] = Lifecycle(
    "seat",
    Transition(None, SeatState.JOINING, "Seated"),
    Transition(None, SeatState.VERIFIED, "the log is rebuilt, and its holder has answered"),
    Transition(SeatState.JOINING, SeatState.JOINING, "Seated", "replaces a silent joiner"),
    Transition(SeatState.JOINING_CALLED, SeatState.JOINING, "Seated", "replaces a silent joiner"),
    Transition(SeatState.LAPSED, SeatState.JOINING, "Seated"),
    Transition(SeatState.JOINING, SeatState.VERIFIED, "Verified"),
    Transition(SeatState.JOINING_CALLED, SeatState.VERIFIED, "Verified"),
    Transition(SeatState.JOINING, SeatState.JOINING_CALLED, "LapseCalled"),
    Transition(SeatState.VERIFIED, SeatState.VERIFIED_CALLED, "LapseCalled"),
    Transition(
        SeatState.JOINING_CALLED, SeatState.JOINING, "LapseDropped", "or its twin is vacated"
    ),
    Transition(
        SeatState.VERIFIED_CALLED, SeatState.VERIFIED, "LapseDropped", "or its twin is vacated"
    ),
    Transition(SeatState.JOINING_CALLED, SeatState.LAPSED, "Lapsed"),
    Transition(SeatState.VERIFIED_CALLED, SeatState.LAPSED, "Lapsed"),
    Transition(SeatState.VERIFIED, SeatState.LAPSED, "Lapsed", "rows that it needs are gone"),
    *(Transition(state, None, "Vacated", "or its pair is retired") for state in SeatState),
)


# --- a merge slot -----------------------------------------------------------------------------


class SlotState(StrEnum):
    """State of a merge slot, as recorded in the header log."""

    OPEN = "open"
    ENDED = "ended"
    SEALED = "sealed"
    """Sealed at every sink. The log drops the slot, and its number is never used again."""


SLOT: Lifecycle[SlotState] = Lifecycle(
    "slot",
    Transition(None, SlotState.OPEN, "SlotOpened"),
    Transition(None, SlotState.ENDED, "the log is rebuilt, and a merge has reported it"),
    Transition(SlotState.OPEN, SlotState.ENDED, "SlotEnded"),
    Transition(SlotState.ENDED, SlotState.SEALED, "SlotSealed"),
)


# --- a replica --------------------------------------------------------------------------------


class ReplicaLife(StrEnum):
    """Phase of a replica's process."""

    WAITING = "waiting"
    """Has no state, and no source to copy it from yet."""
    COPYING = "copying"
    INSTALLING = "installing"
    """Its first state has arrived completely and is being verified."""
    BOOTING = "booting"
    """Has its state and waits for Spark to start."""
    IDLE = "idle"
    """Ready for the next epoch, which is not available yet."""
    SKIPPING = "skipping"
    """Far behind: copies its twin's state instead of computing the epochs it missed."""
    REPLACING = "replacing"
    """Replaces its own state by its twin's, which has arrived completely."""
    FETCHING = "fetching"
    """Has requested the rows of the next epoch."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Runs its last epoch: it was asked to terminate."""
    SUPERSEDED = "superseded"
    """A rebuilt log has cut the running epoch again: its result must not be committed."""
    COMMITTING = "committing"
    """The result is in the outbox; Spark commits the epoch."""
    FINISHING = "finishing"
    """Like `COMMITTING`, and exits afterwards: it was asked to terminate."""
    ENDED = "ended"

    @property
    def has_state(self) -> bool:
        """Whether its volume has a complete state."""
        return self not in _WITHOUT_STATE

    @property
    def copies(self) -> bool:
        """Whether it copies or installs a state: its first one, or its twin's."""
        return self in _COPIES

    @property
    def has_batch(self) -> bool:
        """Whether Spark has an epoch that it has not committed."""
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
"""Phases in which it requests state from holders."""

MAY_WORK = frozenset({ReplicaLife.IDLE, ReplicaLife.FETCHING, ReplicaLife.SKIPPING})
"""Phases in which it may run the next epoch or request its rows."""

RESULT_DUE = frozenset({ReplicaLife.RUNNING, ReplicaLife.STOPPING})
"""Phases in which it keeps the result that Spark computes."""

REPLICA: Lifecycle[ReplicaLife] = Lifecycle(
    "replica",
    Transition(None, ReplicaLife.WAITING, "starts on an empty volume"),
    Transition(None, ReplicaLife.BOOTING, "starts on its volume"),
    Transition(None, ReplicaLife.IDLE, "starts on its volume, Spark is up"),
    Transition(ReplicaLife.WAITING, ReplicaLife.COPYING, "the lead names a holder"),
    Transition(
        ReplicaLife.WAITING,
        ReplicaLife.INSTALLING,
        "the lead says to begin with the empty state",
    ),
    Transition(
        ReplicaLife.COPYING,
        ReplicaLife.INSTALLING,
        "all parts have arrived, or the lead says to begin with the empty state",
    ),
    Transition(ReplicaLife.INSTALLING, ReplicaLife.BOOTING, "Installed before SparkUp"),
    Transition(ReplicaLife.INSTALLING, ReplicaLife.IDLE, "Installed"),
    Transition(ReplicaLife.BOOTING, ReplicaLife.IDLE, "SparkUp"),
    Transition(ReplicaLife.IDLE, ReplicaLife.SKIPPING, "its twin is far ahead"),
    Transition(ReplicaLife.IDLE, ReplicaLife.FETCHING, "Fetch"),
    Transition(ReplicaLife.IDLE, ReplicaLife.RUNNING, "Run, an epoch without chunks"),
    Transition(ReplicaLife.FETCHING, ReplicaLife.SKIPPING, "its twin is far ahead"),
    Transition(ReplicaLife.FETCHING, ReplicaLife.IDLE, "a rebuilt log cut the epoch again"),
    Transition(ReplicaLife.FETCHING, ReplicaLife.RUNNING, "Run, all rows have arrived"),
    Transition(ReplicaLife.SKIPPING, ReplicaLife.REPLACING, "the copy has arrived"),
    Transition(
        ReplicaLife.SKIPPING,
        ReplicaLife.IDLE,
        "the copy takes too long, or the lead no longer names a source",
    ),
    Transition(ReplicaLife.REPLACING, ReplicaLife.IDLE, "Installed"),
    Transition(ReplicaLife.RUNNING, ReplicaLife.COMMITTING, "BatchResult"),
    Transition(ReplicaLife.RUNNING, ReplicaLife.STOPPING, "Terminate"),
    Transition(ReplicaLife.RUNNING, ReplicaLife.SUPERSEDED, "a rebuilt log cut the epoch again"),
    Transition(ReplicaLife.STOPPING, ReplicaLife.FINISHING, "BatchResult"),
    Transition(ReplicaLife.STOPPING, ReplicaLife.SUPERSEDED, "a rebuilt log cut the epoch again"),
    Transition(ReplicaLife.COMMITTING, ReplicaLife.IDLE, "BatchCommitted"),
    Transition(ReplicaLife.COMMITTING, ReplicaLife.FINISHING, "Terminate"),
    *(
        Transition(life, ReplicaLife.ENDED, "Exit")
        for life in ReplicaLife
        if life is not ReplicaLife.ENDED
    ),
)


# --- an owner and its follower ----------------------------------------------------------------


class Bond(StrEnum):
    """Replication state between the owner of a log and its follower."""

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
    Transition(Bond.FILLING, Bond.ALONE, "the follower is silent"),
    Transition(Bond.FILLING, Bond.JOINING, "the follower has everything"),
    Transition(Bond.JOINING, Bond.PAIRED, "recorded as buddy"),
    Transition(Bond.JOINING, Bond.LEAVING, "the follower is silent"),
    Transition(Bond.PAIRED, Bond.LEAVING, "the follower is silent, gone, or leaving"),
    Transition(Bond.LEAVING, Bond.ALONE, "recorded without a buddy"),
)


# --- a split and the header log ---------------------------------------------------------------


class LogRole(StrEnum):
    """Role of a split in the header log. A new process follows, also if its volume has led (h)."""

    FOLLOWER = "follower"
    """Does not lead; keeps what a lead copies to it."""
    CANDIDATE = "candidate"
    """Has asked the register to name it lead; the outcome is not known yet."""
    REBUILDING = "rebuilding"
    """Named lead; musters the members to rebuild the log (i)."""
    LEADING = "leading"
    HANDING_OVER = "handing over"
    """Leads until its buddy has taken over: it was asked to terminate."""


LEADS = frozenset({LogRole.LEADING, LogRole.HANDING_OVER})
"""Roles in which it decides and writes the header log."""

ELECTED = LEADS | {LogRole.REBUILDING}
"""Roles in which the register names it lead, as far as it knows."""

SPLIT: Lifecycle[LogRole] = Lifecycle(
    "split",
    Transition(None, LogRole.FOLLOWER, "starts"),
    Transition(LogRole.FOLLOWER, LogRole.CANDIDATE, "a rule lets it try to lead", "or TakeLead"),
    Transition(LogRole.CANDIDATE, LogRole.FOLLOWER, "its swap has failed"),
    Transition(LogRole.CANDIDATE, LogRole.LEADING, "its swap has succeeded"),
    Transition(LogRole.CANDIDATE, LogRole.REBUILDING, "its swap has succeeded, its log is void"),
    Transition(LogRole.REBUILDING, LogRole.LEADING, "the log is rebuilt"),
    Transition(LogRole.LEADING, LogRole.HANDING_OVER, "Terminate", "or it came before"),
    Transition(LogRole.REBUILDING, LogRole.FOLLOWER, "the register names another lead"),
    Transition(LogRole.LEADING, LogRole.FOLLOWER, "the register names another lead"),
    Transition(LogRole.HANDING_OVER, LogRole.FOLLOWER, "the register names another lead"),
)


# --- a merge ----------------------------------------------------------------------------------


class MergeRole(StrEnum):
    """Role of a merge's process in its slot."""

    STANDBY = "standby"
    ACTIVE = "active"
    LEAVING = "leaving"
    """Active until another merge is, or for the heartbeat timeout: it was asked to terminate."""
    ENDED = "ended"


DELIVERS = frozenset({MergeRole.ACTIVE, MergeRole.LEAVING})
"""Roles in which it fetches answers and delivers."""

MERGE: Lifecycle[MergeRole] = Lifecycle(
    "merge",
    Transition(None, MergeRole.STANDBY, "starts"),
    Transition(MergeRole.STANDBY, MergeRole.ACTIVE, "the lead makes it active"),
    Transition(MergeRole.ACTIVE, MergeRole.STANDBY, "the lead makes another one active"),
    Transition(MergeRole.ACTIVE, MergeRole.LEAVING, "Terminate"),
    Transition(MergeRole.STANDBY, MergeRole.ENDED, "Exit"),
    Transition(MergeRole.ACTIVE, MergeRole.ENDED, "Exit"),
    Transition(MergeRole.LEAVING, MergeRole.ENDED, "Exit"),
)

LIFECYCLES: tuple[Lifecycle[Any], ...] = (PARTITION, LANE, SEAT, SLOT, REPLICA, BOND, SPLIT, MERGE)

"""The enumerations of a status; every member has a description.

Programs compare members, never texts or order.
"""

from enum import StrEnum
from typing import Final, Self

SPEC_CHANGED: Final = "SpecChanged"
"""Reason of `Ready` when a fixed field changed after the start; the change may be taken back."""

MERGES_PER_SLOT: Final = 2
"""One delivers, one is on standby."""


class Word(StrEnum):
    """A string enumeration whose members carry a description."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Create a member; its meaning is for people and is not compared."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Phase(Word):
    """The lifecycle of a pipeline as a whole."""

    PENDING = "Pending", "accepted, nothing started yet"
    REFUSED = "Refused", "the spec or the query is rejected; the condition Ready has the reason"
    STARTING = "Starting", "members are starting, no epoch is delivered yet"
    RUNNING = "Running", "epochs are cut and delivered"
    SUSPENDED = "Suspended", "sources are paused by spec.suspend, the pods stay"
    HALTED = "Halted", "a pair or a sink is blocked until its user acts"
    COMPLETED = "Completed", "all sources ended and all results are delivered"

    @property
    def is_terminal(self) -> bool:
        """Whether the pipeline does not leave it by itself: it is done, or its user must act."""
        return self in _TERMINAL


_TERMINAL = frozenset({Phase.REFUSED, Phase.HALTED, Phase.COMPLETED})


class ChangeStage(Word):
    """The stage of a change of pairs."""

    PLANNED = "Planned", "decided; nothing is built yet"
    BUILDING = "Building", "new pairs copy state and replay, beside the old ones"
    SYNCED = "Synced", "all new replicas are level with the pipeline"
    CUTTING = "Cutting", "the new pairs take over at the next epoch"
    RETIRING = "Retiring", "the old pairs stay until the new ones have delivered"
    ABANDONED = "Abandoned", "given up; the pipeline goes on with the pairs that it has"


class PairState(Word):
    """The health of a pair."""

    STARTING = "Starting", "no replica holds the state yet"
    PAIRED = "Paired", "both replicas hold the state, within an epoch of each other"
    CATCHING_UP = "CatchingUp", "one replica serves, the other copies or replays"
    ALONE = "Alone", "one replica serves, no other is starting"
    DOWN = "Down", "no replica that holds the state answers; if they are down, epochs wait"


class PairStanding(Word):
    """The place of a pair in a change. Only current pairs count in a status."""

    CURRENT = "current", "owns its keys; its results are delivered"
    SHADOW = "shadow", "is built beside the current pairs, for the next generation"
    MUTED = (
        "muted",
        "owned its keys before; runs on, without output for later epochs, until it is retired or "
        "owns them again",
    )
    GONE = "gone", "retired, or given up; its processes or pods end"


class Role(Word):
    """The role of a replica in its pair. Both replicas compute every epoch."""

    PRIMARY = "primary", "the replica that joiners copy from; upgraded last"
    SECONDARY = "secondary", "its twin"


class SeatState(Word):
    """The state of a seat of a pair, as recorded in the header log."""

    JOINING = "joining", "its holder has no verified state yet"
    JOINING_CALLED = "joining, called", "as joining; lapses once its twin answers the call"
    VERIFIED = "verified", "a full member"
    VERIFIED_CALLED = (
        "verified, called",
        "still a full member; lapses once its twin answers the call",
    )
    LAPSED = "lapsed", "too far behind: trimming ignores it, its holder rejoins by copy"

    @property
    def is_full(self) -> bool:
        """Whether its holder has the pair's state and counts as a copy of it."""
        return self in _FULL


_FULL = frozenset({SeatState.VERIFIED, SeatState.VERIFIED_CALLED})


class MemberKind(Word):
    """The kind of a process or pod of a pipeline."""

    SPLIT = "split", "reads the sources and keeps rows until they are committed"
    REPLICA = "replica", "a Spark driver, one of the two of a pair"
    MERGE = "merge", "takes the first result of each pair and epoch and delivers it"
    SPARE = "spare", "a warm driver that can become a replica"


class MemberState(Word):
    """The state of a process or pod."""

    STARTING = "Starting", "has not answered yet"
    CATCHING_UP = "CatchingUp", "copies state or replays epochs"
    RUNNING = "Running", "healthy and working"
    STANDBY = "Standby", "ready to take over"
    SILENT = "Silent", "running, but it does not answer"
    GONE = "Gone", "its process or pod has ended"


class ConditionType(Word):
    """The type of a condition."""

    READY = "Ready", "the pipeline reads its sources and delivers results"
    PAIRED = "Paired", "every pair has two replicas in sync"
    CATCHING_UP = "CatchingUp", "a replica copies its twin's state or replays"
    REBALANCING = "Rebalancing", "a new generation is being built or cut over"
    PROGRESSING = "Progressing", "what runs is not yet what the manifest asks for"
    VULNERABLE = "Vulnerable", "the header log, a lane or a pair has one copy only"
    CO_LOCATED = "CoLocated", "twins, or all splits, share a node"
    DATA_LOST = "DataLost", "acknowledged rows or results are lost"


class ConditionStatus(Word):
    """The status of a condition."""

    TRUE = "True", "it holds"
    FALSE = "False", "it does not hold"
    UNKNOWN = "Unknown", "not known at the moment"


class EventReason(Word):
    """The reason of an event. On a cluster the operator writes more; see operations.md."""

    FAILOVER = "Failover", "the primary of a pair failed; its twin is primary now"
    CATCH_UP_STARTED = "CatchUpStarted", "a replica copies its twin's state or replays"
    PAIRED = "Paired", "both replicas of a pair are in sync again"
    LEAD_CHANGED = "LeadChanged", "another split leads the header log"
    LANE_CLOSED = "LaneClosed", "the lane of a split that is gone or leaves is closed"
    GENERATION_PLANNED = "GenerationPlanned", "new pairs are built beside those that run"
    GENERATION_CUT = "GenerationCut", "a new generation owns the keys from this epoch on"
    GENERATION_RETIRED = "GenerationRetired", "the replaced pairs are gone, the change is done"
    GENERATION_ABANDONED = (
        "GenerationAbandoned",
        "a change was given up; the pipeline goes on with the pairs that it has",
    )
    POISON_EPOCH = "PoisonEpoch", "an epoch kills both replicas of a pair; the pair stopped"
    TWINS_DIFFER = "TwinsDiffer", "the replicas of a pair gave different results"
    DATA_LOST = "DataLost", "acknowledged rows or results are lost"
    NOT_READY = "NotReady", "the condition Ready turned false, or has another reason now"
    READY = "Ready", "the condition Ready is true again"
    SOURCE_FAILED = "SourceFailed", "a source cannot be read; retried"
    SINK_FAILED = "SinkFailed", "a sink cannot be written; retried"
    SINK_REWOUND = (
        "SinkRewound",
        "a sink has lost epochs that were delivered to it; delivery to it stopped",
    )


class SinkClass(Word):
    """The delivery guarantee of a sink."""

    TRANSACTIONAL = "Transactional", "exactly-once: position and rows in one atomic step"
    IDEMPOTENT = "Idempotent", "exactly-once: a repeated epoch changes nothing"
    AT_LEAST_ONCE = "AtLeastOnce", "at-least-once: a repeated epoch may be seen twice"

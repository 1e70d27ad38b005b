"""The words of a status: each an enumeration whose members say what they mean.

Programs compare members, never sentences or order.
"""

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A word with its meaning attached."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Make a member; the meaning is for people and takes no part in comparisons."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Phase(Word):
    """Where a pipeline stands as a whole."""

    PENDING = "Pending", "seen, nothing started yet"
    REFUSED = "Refused", "the spec or the query cannot be run; the condition says why"
    STARTING = "Starting", "members are starting, no epoch has been delivered yet"
    RUNNING = "Running", "epochs are cut and delivered"
    SUSPENDED = "Suspended", "sources pause as asked, the pods stay"
    HALTED = "Halted", "a pair or a sink cannot go on without a decision"
    COMPLETED = "Completed", "all sources ended and everything is delivered"


class PairState(Word):
    """How much of a pair is there."""

    STARTING = "Starting", "no replica holds the state yet"
    PAIRED = "Paired", "both replicas hold the state, within an epoch of each other"
    CATCHING_UP = "CatchingUp", "one replica answers, the other copies or replays"
    ALONE = "Alone", "one replica answers and no other is on its way"
    DOWN = "Down", "no replica answers; epochs wait"


class Role(Word):
    """The part of a replica in its pair. Both compute."""

    PRIMARY = "primary", "is copied from, is upgraded last"
    SECONDARY = "secondary", "the twin"


class SeatState(Word):
    """How the holder of a seat stands to its pair, as recorded."""

    JOINING = "joining", "it has no state that is known of"
    JOINING_CALLED = "joining, called", "the same, and lapses once its twin has answered the call"
    VERIFIED = "verified", "a full member"
    VERIFIED_CALLED = (
        "verified, called",
        "still a full member, and lapses once its twin has answered the call",
    )
    LAPSED = "lapsed", "trimming does not wait for it, and its holder has to join again"

    @property
    def is_full(self) -> bool:
        """Does its holder hold the pair's state and count for it?"""
        return self in _FULL


_FULL = frozenset({SeatState.VERIFIED, SeatState.VERIFIED_CALLED})


class MemberKind(Word):
    """What a process or pod of a pipeline is."""

    SPLIT = "split", "takes rows in and keeps them until they are committed"
    REPLICA = "replica", "a Spark driver, half of a pair"
    MERGE = "merge", "keeps the first answer of each pair and epoch and delivers it"
    SPARE = "spare", "a warm driver that can become a replica"


class MemberState(Word):
    """What a process or pod is doing."""

    STARTING = "Starting", "not answering yet"
    CATCHING_UP = "CatchingUp", "copies state or replays epochs"
    RUNNING = "Running", "does its part"
    STANDBY = "Standby", "ready to take over"
    SILENT = "Silent", "there, but it does not answer"
    GONE = "Gone", "its process or pod has ended"


class ConditionType(Word):
    """What a condition is about."""

    READY = "Ready", "the pipeline takes rows in and delivers results"
    PAIRED = "Paired", "every pair has two synced replicas"
    CATCHING_UP = "CatchingUp", "a replica is copying or replaying"
    REBALANCING = "Rebalancing", "a new generation is being built or taking over"
    VULNERABLE = "Vulnerable", "something exists in one copy only"
    CO_LOCATED = "CoLocated", "twins, or all splits, share a node"
    DATA_LOST = "DataLost", "acknowledged rows or results are lost"


class ConditionStatus(Word):
    """Whether a condition holds."""

    TRUE = "True", "it holds"
    FALSE = "False", "it does not"
    UNKNOWN = "Unknown", "it cannot be told at the moment"


class EventReason(Word):
    """Why an event was written. On a cluster the operator writes more: operations.md."""

    TAKE_OVER = "TakeOver", "a replica is gone, its twin is primary now"
    CATCH_UP_STARTED = "CatchUpStarted", "a new replica copies its twin's state"
    PAIRED = "Paired", "a pair is whole again"
    LEAD_CHANGED = "LeadChanged", "another split leads the header log"
    LANE_CLOSED = "LaneClosed", "the lane of a dead split is closed"
    GENERATION_CUT = "GenerationCut", "a new generation owns the keys from this epoch on"
    POISON_EPOCH = "PoisonEpoch", "an epoch kills both replicas of a pair; the pair stopped"
    TWINS_DIFFER = "TwinsDiffer", "the replicas of a pair gave different answers"
    DATA_LOST = "DataLost", "acknowledged rows or results are lost"
    SOURCE_FAILED = "SourceFailed", "a source cannot be read; it is tried again"
    SINK_FAILED = "SinkFailed", "a sink cannot be delivered to; it is tried again"
    SINK_REWOUND = "SinkRewound", "a sink is behind what it had; nothing is delivered to it"


class SinkClass(Word):
    """What a sink promises."""

    TRANSACTIONAL = "Transactional", "exactly once: position and rows in one atomic step"
    IDEMPOTENT = "Idempotent", "exactly once: a repeated epoch changes nothing"
    AT_LEAST_ONCE = "AtLeastOnce", "a repeated epoch may be seen twice"

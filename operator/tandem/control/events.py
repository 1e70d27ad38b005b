"""Events of a pipeline, as objects that `kubectl describe` shows."""

import hashlib
import logging
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tandem.control.types import Instant, Key, Meter, plain_stamp, precise_stamp
from tandem.kube.kinds import EVENT, Object
from tandem.kube.objects import name_of, namespace_of, uid_of
from tandem.kube.port import Conflict, Kube, KubeError, NotFound, Unreachable
from tandem.policy.decisions import RecordEvent
from tandem_core.model.kubernetes_names import FIELD_MANAGER
from tandem_core.model.states import EventReason, Word

MOST_MESSAGE = 1024
"""Bytes; the API server refuses longer messages."""
AGAIN = 30.0
"""Seconds after which events that the server did not take are retried: each try may last until the
client's timeout, and pods must not wait for that in each reconcile."""
MOST_UNTOLD = 100
"""Events that may wait to be written; of more, the oldest are dropped."""

_log = logging.getLogger(__name__)


class OperatorEventReason(Word):
    """The reason of an event about what the operator did or could not do."""

    REFUSED = "Refused", "the manifest is rejected"
    HALTED = "Halted", "a member is blocked until the user acts"
    BLOCKED = "ReconcileBlocked", "a step of the reconcile failed or is held back; retried"
    COMPLETED = "Completed", "all results are delivered; the pods are deleted"
    SPARE_USED = "SpareUsed", "a warm spare replaces a replica"
    SPARE_FAILED = "SpareFailed", "a spare could not be assigned to a pair and was deleted"
    POD_REPLACED = "PodReplaced", "a pod that cannot restart, or never held state, was deleted"
    POD_KILLED = "PodKilled", "a hung pod was deleted; its twin serves the pair"
    POD_EVICTED = "PodEvicted", "a pod was evicted to move it or to roll out a new template"


_WARNINGS = frozenset[str](
    {
        EventReason.FAILOVER,
        EventReason.POISON_EPOCH,
        EventReason.TWINS_DIFFER,
        EventReason.DATA_LOST,
        EventReason.GENERATION_ABANDONED,
        EventReason.NOT_READY,
        EventReason.SOURCE_FAILED,
        EventReason.SINK_FAILED,
        EventReason.SINK_REWOUND,
        OperatorEventReason.REFUSED,
        OperatorEventReason.HALTED,
        OperatorEventReason.BLOCKED,
        OperatorEventReason.SPARE_FAILED,
        OperatorEventReason.POD_KILLED,
    }
)


@dataclass(frozen=True, slots=True)
class PipelineEvent:
    """An event to be written about a pipeline."""

    reason: Word
    message: str


def event_of_record(record: RecordEvent) -> PipelineEvent:
    """The event that the policy wants written."""
    return PipelineEvent(record.event, record.message)


def event_of(resource: Object, told: PipelineEvent, at: datetime) -> Object:
    """The event's object. Equal events have the same name, whichever operator writes them."""
    message = told.message.encode()[:MOST_MESSAGE].decode(errors="ignore")
    identity = "\n".join((uid_of(resource), told.reason, message))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {
            "name": f"{name_of(resource)}.{digest}",
            "namespace": namespace_of(resource),
        },
        "involvedObject": {
            "apiVersion": resource["apiVersion"],
            "kind": resource["kind"],
            "name": name_of(resource),
            "namespace": namespace_of(resource),
            "uid": uid_of(resource),
        },
        "reason": str(told.reason),
        "message": message,
        "type": "Warning" if told.reason in _WARNINGS else "Normal",
        "firstTimestamp": plain_stamp(at),
        "lastTimestamp": plain_stamp(at),
        "eventTime": precise_stamp(at),
        "count": 1,
        "action": str(told.reason),
        "source": {"component": FIELD_MANAGER},
        "reportingComponent": FIELD_MANAGER,
        "reportingInstance": FIELD_MANAGER,
    }


def write_event(kube: Kube, event: Object) -> None:
    """Write an event; if it exists, raise its count."""
    try:
        kube.create(event)
    except Conflict:
        _count(kube, event)


def _count(kube: Kube, event: Object) -> None:
    try:
        there = kube.get(EVENT, namespace_of(event), name_of(event))
        count = int(there.get("count") or 1) + 1
        kube.replace({**there, "count": count, "lastTimestamp": event["lastTimestamp"]})
    except (Conflict, NotFound):
        # Another writer counted it, or the event has expired.
        return


class EventQueue:
    """The events of one pipeline that are still to be written, oldest first.

    Noting an event needs no server, so it delays nothing. If the server is unreachable, all events
    wait and are retried later; an event that it rejects is dropped.
    """

    def __init__(self, kube: Kube, meter: Meter, key: Key) -> None:
        self._kube = kube
        self._meter = meter
        self._key = key
        self._untold: deque[tuple[PipelineEvent, Instant]] = deque()
        self._again_at = -math.inf

    def note(self, told: Iterable[PipelineEvent], moment: Instant) -> None:
        """Queue events of this moment."""
        for each in told:
            if len(self._untold) == MOST_UNTOLD:
                _log.warning(
                    "%s: event dropped, too many wait: %s", self._key, self._untold.popleft()[0]
                )
            self._untold.append((each, moment))

    def waits(self, now: float) -> float | None:
        """How long the oldest event waits; None if all are written."""
        return now - self._untold[0][1].now if self._untold else None

    def tell(self, resource: Object, now: float) -> None:
        """Write the queued events, until the server is unreachable."""
        while self._untold and now >= self._again_at:
            told, moment = self._untold[0]
            try:
                write_event(self._kube, event_of(resource, told, moment.wall))
            except Unreachable as problem:
                self._again_at = now + AGAIN
                _log.warning("%s: event %s is written later: %s", self._key, told, problem)
                return
            except KubeError as problem:
                _log.warning("%s: event %s was rejected: %s", self._key, told, problem)
            self._untold.popleft()
            self._meter.event(self._key, told.reason)

"""Events of a pipeline, as objects that `kubectl describe` shows."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from tandem.control.moments import plain_stamp, precise_stamp
from tandem.kube.kinds import EVENT, Object
from tandem.kube.objects import name_of, namespace_of, uid_of
from tandem.kube.port import Conflict, Kube, NotFound
from tandem.model.names import FIELD_MANAGER
from tandem.model.states import EventReason, Word
from tandem.policy.decisions import Record

MOST_MESSAGE = 1024
"""Messages of more bytes the API server refuses."""


class Notice(Word):
    """Why the operator wrote an event about what it did or could not do."""

    REFUSED = "Refused", "the manifest cannot be run"
    HALTED = "Halted", "a member cannot go on until the user mends something"
    HINDERED = "Hindered", "something could not be done; it is tried again"
    COMPLETED = "Completed", "everything is delivered; the pods are removed"
    SPARE_USED = "SpareUsed", "a warm spare took the place of a replica"
    SPARE_FAILED = "SpareFailed", "a spare could not be told where it belongs, and was removed"
    POD_REPLACED = "PodReplaced", "a pod that cannot be started again was removed"
    POD_KILLED = "PodKilled", "a pod that hangs was removed; its twin carries the pair"
    POD_MOVED = "PodMoved", "a pod was removed to be made anew, elsewhere or of a new template"


_WARNINGS = frozenset[str](
    {
        EventReason.TAKE_OVER,
        EventReason.POISON_EPOCH,
        EventReason.TWINS_DIFFER,
        EventReason.DATA_LOST,
        EventReason.SOURCE_FAILED,
        EventReason.SINK_FAILED,
        EventReason.SINK_REWOUND,
        Notice.REFUSED,
        Notice.HALTED,
        Notice.HINDERED,
        Notice.SPARE_FAILED,
        Notice.POD_KILLED,
    }
)


@dataclass(frozen=True, slots=True)
class Happening:
    """Something worth an event."""

    reason: Word
    message: str


def happening(record: Record) -> Happening:
    """The event that the policy wants written."""
    return Happening(record.event, f"{record.subject}: {record.detail}")


def event_of(resource: Object, told: Happening, at: datetime) -> Object:
    """The event's object. What is told again, by whomever, has the same name."""
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
    """Write an event; one that is there already is counted once more."""
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
        # Somebody else counted it, or it was old enough to be forgotten.
        return

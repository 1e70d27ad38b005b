"""The objects of a pipeline: those that should be there against those that are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tandem.control.drift import has_drifted
from tandem.control.keys import Key
from tandem.control.observe import TAKEN
from tandem.kube.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    NETWORK_POLICY,
    REPLICA_SET,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    kind_of,
)
from tandem.kube.objects import annotations_of, is_going, is_owned_by, name_of, namespace_of
from tandem.kube.port import Conflict, Kube, NotFound, Refused
from tandem.manifests.objects import objects_of
from tandem.manifests.order import Order
from tandem.model.names import APPLIED_ANNOTATION, PIPELINE_LABEL
from tandem.policy.snapshot import Complaint

_WORKLOADS = frozenset({DEPLOYMENT, REPLICA_SET, DISRUPTION_BUDGET})
"""What a completed pipeline needs no more."""
_APPLIED = (
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    CONFIG_MAP,
    SERVICE,
    NETWORK_POLICY,
    *sorted(_WORKLOADS, key=lambda kind: kind.name),
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be done so that the right objects are there."""

    apply: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()
    in_the_way: tuple[Object, ...] = ()
    """Objects with the right names that are not this pipeline's."""


def wanted(order: Order, over: bool) -> tuple[Object, ...]:
    """The objects that should be there; when all is over those that make pods should not."""
    return tuple(
        document for document in objects_of(order) if not (over and kind_of(document) in _WORKLOADS)
    )


def list_objects(kube: Kube, key: Key) -> list[Object]:
    """All objects of the kinds that are applied with the pipeline's label, whoever made them."""
    labels = {PIPELINE_LABEL: key.name}
    return [found for kind in _APPLIED for found in kube.list(kind, key.namespace, labels)]


def changes(desired: Sequence[Object], there: Iterable[Object], uid: str) -> Changes:
    """Compare by the digests that objects carry, then by what somebody may have changed since.

    What was applied and is not wanted goes.
    """
    known = {_identity(document): document for document in there}
    new, blocked = [], []
    for document in desired:
        found = known.get(_identity(document))
        if found is not None and (is_going(found) or not is_owned_by(found, uid)):
            blocked.append(found)
        elif found is None or _digest(found) != _digest(document) or has_drifted(document, found):
            new.append(document)
    kept = {_identity(document) for document in desired}
    return Changes(
        apply=tuple(new),
        delete=tuple(
            document
            for identity, document in known.items()
            if identity not in kept
            and identity[0] in _WORKLOADS
            and _digest(document) is not None
            and is_owned_by(document, uid)
            and not is_going(document)
        ),
        in_the_way=tuple(blocked),
    )


def carry_out(kube: Kube, todo: Changes, uid: str) -> Complaint | None:
    """Make the changes, as many as the server allows; why it did not allow the first other one.

    Nothing is applied over what is there and does not belong to the pipeline `uid`: what lacks its
    label has not been listed.
    """
    complaints = [_taken(document) for document in todo.in_the_way]
    for document in todo.apply:
        try:
            found = _there(kube, document)
            if found is not None and (is_going(found) or not is_owned_by(found, uid)):
                complaints.append(_taken(found))
            else:
                kube.apply(document)
        except (Refused, Conflict, NotFound) as problem:
            complaints.append(Complaint("NotApplied", f"{_text(document)}: {problem}"))
    for document in todo.delete:
        try:
            kube.delete(document)
        except (Conflict, NotFound):
            continue
        except Refused as problem:
            complaints.append(Complaint("NotDeleted", f"{_text(document)}: {problem}"))
    return complaints[0] if complaints else None


def _there(kube: Kube, document: Object) -> Object | None:
    """What has the name of an object now."""
    try:
        return kube.get(kind_of(document), namespace_of(document), name_of(document))
    except NotFound:
        return None


def _taken(document: Object) -> Complaint:
    return Complaint(TAKEN, f"{_text(document)} {_why_in_the_way(document)}")


def _why_in_the_way(document: Object) -> str:
    return "is still being deleted" if is_going(document) else "is there and is not this pipeline's"


def _identity(document: Object) -> tuple[Kind, str]:
    return kind_of(document), name_of(document)


def _digest(document: Object) -> str | None:
    return annotations_of(document).get(APPLIED_ANNOTATION)


def _text(document: Object) -> str:
    return f"{document['kind']} {name_of(document)}"

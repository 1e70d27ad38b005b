"""Compares the objects of a pipeline with those that should exist, and applies the difference."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from tandem.control.intent_store import NameConflict, check_records, why_taken
from tandem.control.observe import TAKEN
from tandem.control.types import Key
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
    Object,
    ObjectKind,
    kind_of,
)
from tandem.kube.objects import annotations_of, is_going, is_owned_by, name_of, namespace_of
from tandem.kube.port import Conflict, Kube, KubeError, NotFound, Unreachable
from tandem.manifests.desired_state import DesiredState, Workloads
from tandem.manifests.objects import objects_of
from tandem.policy.snapshot import Complaint
from tandem.policy.status.steps import Action, Note, Step, ignore
from tandem_core.model.kubernetes_names import APPLIED_ANNOTATION, PIPELINE_LABEL

_WORKLOADS = frozenset({DEPLOYMENT, REPLICA_SET, DISRUPTION_BUDGET})
"""Kinds that a completed pipeline no longer needs."""
_APPLIED = (
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    CONFIG_MAP,
    SERVICE,
    NETWORK_POLICY,
    *sorted(_WORKLOADS, key=lambda kind: kind.name),
)
MOST_UNANSWERED = 10
"""Unanswered calls after which the rest is left to the next comparison: each may last until the
client's timeout, and a reconcile has to end before it counts as stuck."""
MOST_OF_A_KIND = 3
"""The same for objects of one kind, as when their admission webhook does not answer."""

COMPARE_EVERY = 30.0
"""Seconds after which all objects are compared although the manifest is the same."""
COMPARE_AGAIN = 3.0
"""The same after an object could not be applied."""


class Cause(StrEnum):
    """Why an object is applied or deleted."""

    MISSING = "it is missing"
    CHANGED = "the manifest has changed"
    DRIFTED = "it was edited"
    UNWANTED = "no longer needed"


@dataclass(frozen=True, slots=True)
class Changes:
    """The objects to apply and to delete so that the right ones exist."""

    apply: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()
    in_the_way: tuple[Object, ...] = ()
    """Objects with the right names that have another owner, or are still being deleted."""
    causes: Mapping[str, Cause] = field(default_factory=dict)
    """Why each object is applied, by kind and name."""


class Target(NamedTuple):
    """The objects that should exist, as far as that changes while a pipeline runs."""

    generation: int
    """The generation of the manifest."""
    workloads: Workloads
    over: bool = False
    """Whether all is delivered: no workloads are needed."""
    refused: bool = False
    """Whether drivers cannot begin."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The last comparison of a pipeline's objects with its target."""

    target: Target | None = None
    again_at: float = -math.inf
    """When the same target is compared again."""
    hindered: Complaint | None = None
    """Why an object could not be applied."""
    changed: bool = False
    """Whether objects were to be applied, so listed pod templates may be outdated."""

    def is_due(self, target: Target, now: float) -> bool:
        """Whether objects have to be compared now."""
        return now >= self.again_at or target != self.target


def compare(
    kube: Kube, order: DesiredState, target: Target, token: str | None, now: float, note: Note
) -> Comparison:
    """Apply the objects that should exist, and delete those that are no longer needed."""
    try:
        missing = check_records(kube, order, token, note)
    except NameConflict as problem:
        missing = Complaint(TAKEN, str(problem))
    there = list_objects(kube, Key(order.namespace, order.name))
    desired = wanted(replace(order, refused=target.refused), target.over)
    todo = changes(desired, there, order.uid)
    hindered = carry_out(kube, todo, order.uid, note) or missing
    again_at = now + (COMPARE_EVERY if hindered is None else COMPARE_AGAIN)
    return Comparison(target, again_at, hindered, changed=bool(todo.apply))


def wanted(order: DesiredState, over: bool) -> tuple[Object, ...]:
    """The objects that should exist; without workloads and their budgets if `over`."""
    return tuple(
        document for document in objects_of(order) if not (over and kind_of(document) in _WORKLOADS)
    )


def list_objects(kube: Kube, key: Key) -> list[Object]:
    """List all objects of the applied kinds that have the pipeline's label, whoever made them."""
    labels = {PIPELINE_LABEL: key.name}
    return [found for kind in _APPLIED for found in kube.list(kind, key.namespace, labels)]


def changes(desired: Sequence[Object], there: Iterable[Object], uid: str) -> Changes:
    """Compare objects by the digests that they carry, then for edits made since.

    Workloads and budgets that were applied and are no longer desired are deleted.
    """
    known = {_identity(document): document for document in there}
    new, blocked, causes = [], [], {}
    for document in desired:
        found = known.get(_identity(document))
        if found is not None and (is_going(found) or not is_owned_by(found, uid)):
            blocked.append(found)
        elif cause := _cause(document, found):
            new.append(document)
            causes[_text(document)] = cause
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
        causes=causes,
    )


def _cause(document: Object, found: Object | None) -> Cause | None:
    """Why an object is to be applied; None if the one found is as it should be."""
    if found is None:
        return Cause.MISSING
    if _digest(found) != _digest(document):
        return Cause.CHANGED
    return Cause.DRIFTED if has_drifted(document, found) else None


def carry_out(kube: Kube, todo: Changes, uid: str, note: Note = ignore) -> Complaint | None:
    """Make all changes that the server accepts; return why the first failed one did.

    No object is applied over one that the pipeline `uid` does not own. Each is read before, because
    objects without the pipeline's label were not listed. A failed change does not hold up the
    others, and is retried when objects are next compared. `note` receives each change made.
    """
    complaints = [Complaint(TAKEN, _why_in_the_way(document)) for document in todo.in_the_way]
    unanswered = Counter[ObjectKind]()
    for document, step, failing in (
        *((document, _apply, "ApplyFailed") for document in todo.apply),
        *((document, _delete, "DeleteFailed") for document in todo.delete),
    ):
        text = _text(document)
        kind = kind_of(document)
        if unanswered[kind] == MOST_OF_A_KIND or unanswered.total() == MOST_UNANSWERED:
            continue
        try:
            step(kube, document, uid)
        except NameConflict as problem:
            complaints.append(Complaint(TAKEN, str(problem)))
        except KubeError as problem:
            unanswered[kind] += isinstance(problem, Unreachable)
            complaints.append(Complaint(failing, f"{text}: {problem}"))
        else:
            action = Action.APPLY if step is _apply else Action.DELETE
            note(Step(action, text, todo.causes.get(text, Cause.UNWANTED)))
    return complaints[0] if complaints else None


def _apply(kube: Kube, document: Object, uid: str) -> None:
    with suppress(NotFound):
        found = kube.get(kind_of(document), namespace_of(document), name_of(document))
        if is_going(found) or not is_owned_by(found, uid):
            raise NameConflict(_why_in_the_way(found))
    kube.apply(document)


def _delete(kube: Kube, document: Object, _uid: str) -> None:
    with suppress(Conflict, NotFound):
        kube.delete(document)


def _why_in_the_way(document: Object) -> str:
    text = _text(document)
    going = f"{text} is still being deleted: wait, or remove the finalizers that hold it"
    return going if is_going(document) else why_taken(text)


def _identity(document: Object) -> tuple[ObjectKind, str]:
    return kind_of(document), name_of(document)


def _digest(document: Object) -> str | None:
    return annotations_of(document).get(APPLIED_ANNOTATION)


def _text(document: Object) -> str:
    return f"{document['kind']} {name_of(document)}"


_MAKE_PODS = frozenset({DEPLOYMENT, REPLICA_SET})


def has_drifted(wanted: Object, there: Object) -> bool:
    """Whether an object was edited in the fields that its manifest sets.

    Of Deployments and ReplicaSets only the count is compared. Their template may be an older
    operator's, which writes the same order differently, and pods must not be rolled for that.
    """
    if kind_of(wanted) in _MAKE_PODS:
        return bool(wanted["spec"]["replicas"] != there["spec"].get("replicas"))
    parts = wanted.keys() - {"apiVersion", "kind", "metadata"}
    return not all(_is_in(wanted[part], there.get(part)) for part in parts)


def _is_in(wanted: Any, there: Any) -> bool:
    """Whether all wanted values are present, whatever the server has added to mappings."""
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        return all(_is_in(value, there.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        return all(map(_is_in, wanted, there))
    return bool(wanted == there)

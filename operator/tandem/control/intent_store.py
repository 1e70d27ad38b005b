"""Stores the records that exist before a pipeline's workloads: token, register, intent.

All three are created once. The intent is changed by compare-and-swap: a write fails if the intent
was written since it was read.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tandem.control.types import Key
from tandem.kube.kinds import CONFIG_MAP, LEASE, SECRET, Object, ObjectKind, kind_of
from tandem.kube.objects import annotations_of, is_owned_by, name_of, namespace_of, uid_of
from tandem.kube.port import Conflict, Kube, NotFound
from tandem.manifests.config_objects import intent_of, register_of, token_of
from tandem.manifests.desired_state import DesiredState, Images, Workloads, parse_images
from tandem.policy.intent import first_functions, first_intent, with_primaries
from tandem.policy.snapshot import Complaint
from tandem.policy.status.steps import Action, Note, Step, ignore
from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.intent_text import function_key, intent_text, read_intent_text
from tandem_core.model.kubernetes_names import (
    ENDING_ANNOTATION,
    IMAGES_ANNOTATION,
    INTENT_KEY,
    SPEC_ANNOTATION,
    TOKEN_FILE,
    TOKEN_KEY,
    intent_name,
    register_name,
    token_name,
)
from tandem_core.model.pipeline import Pipeline
from tandem_core.routing.errors import RoutingError
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import from_bytes

_REMEDY = "restore it from a backup, or start a new pipeline"


class NameConflict(Exception):
    """A name that the pipeline needs is taken by another owner, or by an earlier pipeline."""


class IntentUnreadable(Exception):
    """The stored intent cannot be read: it was edited, or another version wrote it."""


def why_taken(what: str) -> str:
    """Why an object of another owner is in the way, and what to do."""
    left = "wait if it is left from a deleted pipeline of this name (Kubernetes deletes it)"
    other = "delete it if nothing needs it, or give this pipeline another name"
    return f"{what} exists and belongs to another owner: {other}; {left}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The intent as stored in the cluster."""

    document: Object
    intent: Intent
    images: Images
    spec: str | None
    """The digest of the manifest that the pipeline began with; None if that is not known."""
    ending: bool
    """Whether the pipeline is being reset: everything is deleted, then created again."""


def read_intent(kube: Kube, key: Key, uid: str) -> Recorded | None:
    """Read the pipeline's intent; None if there is none yet.

    Raises:
        NameConflict: it is another pipeline's.
        IntentUnreadable: it was edited, or is of another version.
    """
    found = _read(kube, CONFIG_MAP, key.namespace, intent_name(key.name), uid)
    return None if found is None else _recorded(found)


def read_token(kube: Kube, key: Key) -> str | None:
    """Read the token that the pods use; None if it is missing or unreadable."""
    try:
        found = kube.get(SECRET, key.namespace, token_name(key.name))
    except NotFound:
        return None
    try:
        return base64.b64decode((found.get("data") or {})[TOKEN_KEY]).decode()
    except (KeyError, ValueError):
        return None


def function_beside(document: Object, digest: str) -> RoutingFunction:
    """Read a routing function that is stored beside the intent.

    Raises:
        RoutingError: it is missing, or cannot be read.
    """
    form = (document.get("binaryData") or {}).get(function_key(digest))
    where = f"in ConfigMap {name_of(document)}"
    if form is None:
        raise RoutingError(f"{function_key(digest)} is missing {where}; {_REMEDY}")
    try:
        return from_bytes(base64.b64decode(form))
    except (RoutingError, ValueError) as problem:
        unusable = f"{function_key(digest)} {where} cannot be read: {problem}"
        raise RoutingError(f"{unusable}; {_REMEDY}") from problem


def create_records(
    kube: Kube,
    pipeline: Pipeline,
    uid: str,
    *,
    images: Images,
    token: str,
    where: str,
    note: Note = ignore,
) -> Recorded:
    """Create the records of a new pipeline, the intent last.

    `where` is the operator's namespace. May be repeated: existing records stay as they are, so the
    valid token is the one that can be read afterwards. `note` receives each creation.

    Raises:
        NameConflict: a record is another pipeline's.
    """
    intent = first_intent(pipeline).replace(suspended=pipeline.spec.suspend)
    order = DesiredState(pipeline, uid, images, Workloads((), 0, ()), where)

    def create(document: Object) -> Object:
        return _create_once(kube, document, uid, note, "the pipeline is new")

    create(token_of(order, token))
    create(register_of(order))
    functions = {function_key(each.digest): each.form for each in first_functions(pipeline)}
    return _recorded(create(intent_of(order, intent_text(intent), functions)))


def check_records(
    kube: Kube, order: DesiredState, token: str | None, note: Note = ignore
) -> Complaint | None:
    """Check that token and register still exist; return what is missing and cannot be restored.

    A token that is known is written again. A lost register is not replaced: with an empty one the
    splits would start from scratch.
    """
    key = Key(order.namespace, order.name)
    if _read(kube, LEASE, key.namespace, register_name(key.name), order.uid) is None:
        what = f"Lease {register_name(key.name)} is missing"
        means = "the split that leads continues, but no other one can be elected"
        hint = "create a new pipeline, and do not delete splits until then"
        return Complaint("RegisterMissing", f"{what}: {means}; {hint}")
    if read_token(kube, key) is None and token is not None:
        _create_once(kube, token_of(order, token), order.uid, note, "it is missing")
    if read_token(kube, key) is None:
        if token is None:
            return token_unknown(key.name)
        what = f"Secret {token_name(key.name)} is empty: new pods cannot start"
        return Complaint("TokenMissing", what, "delete it; the operator then writes it again")
    return None


def token_unknown(pipeline: str) -> Complaint:
    """The complaint while the operator has no token, and so no report of any pod."""
    blind = "the operator cannot ask the pods, so this status is out of date"
    what = f"Secret {token_name(pipeline)} is missing or empty: {blind}"
    means = "Rows flow and drivers fail over, but new pods cannot start"
    again = f"create it with the token from a running pod (/{TOKEN_FILE})"
    meanwhile = "or create a new pipeline; do not delete pods until then"
    hint = f"if it is empty, delete it; {again}, {meanwhile}"
    return Complaint("TokenMissing", f"{what}. {means}", hint)


def record_ending(kube: Kube, recorded: Recorded) -> None:
    """Record that the pipeline is being reset: soon no member is left to confirm that it may be."""
    kube.mark(recorded.document, {}, {ENDING_ANNOTATION: "true"})


def forget_records(kube: Kube, key: Key, uid: str, recorded: Recorded) -> None:
    """Delete register and intent. The intent goes last: while it exists the register is valid.

    Raises:
        Conflict: the intent is another one by now, and the register belongs to that one.
    """
    there = _read(kube, CONFIG_MAP, key.namespace, intent_name(key.name), uid)
    if there is None or uid_of(there) != uid_of(recorded.document):
        raise Conflict(f"{intent_name(key.name)} has changed since it was read")
    register = _read(kube, LEASE, key.namespace, register_name(key.name), uid)
    if register is not None:
        kube.delete(register)
    kube.delete(there)


def _create_once(kube: Kube, document: Object, uid: str, note: Note, reason: str) -> Object:
    """Create an object, or return the existing one."""
    kind, namespace, name = kind_of(document), namespace_of(document), name_of(document)
    try:
        created = kube.create(document)
    except Conflict:
        found = _read(kube, kind, namespace, name, uid)
        if found is None:
            raise
        return found
    note(Step(Action.CREATE, f"{kind.name} {name}", reason))
    return created


def revise_intent(intent: Intent, primaries: Mapping[str, str], suspended: bool) -> Intent:
    """The next version of an intent; the same one if nothing changes."""
    if dict(intent.primaries) == dict(primaries) and intent.suspended == suspended:
        return intent
    return with_primaries(intent, primaries).replace(suspended=suspended)


def swap_intent(
    kube: Kube, recorded: Recorded, intent: Intent, functions: Iterable[Function] = ()
) -> Recorded:
    """Replace the intent that was read, and with it the routing functions that it names.

    Raises:
        Conflict: it was changed since it was read.
        NotFound: it no longer exists.
    """
    added = {function_key(each.digest): _base64(each.form) for each in functions}
    known = {**(recorded.document.get("binaryData") or {}), **added}
    named = set(map(function_key, intent.functions_named()))
    changed = {
        "data": {INTENT_KEY: intent_text(intent)},
        "binaryData": {name: form for name, form in known.items() if name in named},
    }
    return _recorded(kube.replace({**recorded.document, **changed}))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(
    kube: Kube, kind: ObjectKind, namespace: str | None, name: str, uid: str
) -> Object | None:
    try:
        found = kube.get(kind, namespace, name)
    except NotFound:
        return None
    if not is_owned_by(found, uid):
        raise NameConflict(why_taken(f"{kind.name} {name}"))
    return found


def _recorded(document: Object) -> Recorded:
    try:
        intent = read_intent_text((document.get("data") or {})[INTENT_KEY])
        annotations = annotations_of(document)
        images = parse_images(annotations[IMAGES_ANNOTATION])
        spec = annotations.get(SPEC_ANNOTATION)
    except (ValueError, KeyError, TypeError) as problem:
        raise IntentUnreadable(_why_unreadable(document, problem)) from problem
    return Recorded(document, intent, images, spec, ENDING_ANNOTATION in annotations)


def _why_unreadable(document: Object, problem: Exception) -> str:
    cause = f"key {problem} is missing" if isinstance(problem, KeyError) else str(problem)
    idle = "until it can be read the operator repairs, changes and deletes nothing"
    edited = "restore it from a backup made after the last change if it was edited"
    remedy = f"{edited}, or run the operator version that wrote it; do not delete splits until then"
    return f"ConfigMap {name_of(document)} cannot be read ({cause}). Rows flow; {idle}; {remedy}"

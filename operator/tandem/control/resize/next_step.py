"""The next step of a change: what manifest and requests want, and what is known of new pairs.

Requests to move keys are in an annotation of the resource.
"""

from tandem.control.context import ReconcileContext
from tandem.control.intent_store import function_beside
from tandem.kube.kinds import Object
from tandem.kube.objects import annotations_of
from tandem.policy.change.codec import RoutingCodec, ShareChanged
from tandem.policy.change.intent_step import IntentStep
from tandem.policy.change.steps import next_intent
from tandem.policy.change.wanted import Evidence, next_request, wanted_of
from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.shadows import build_failures, build_obstacles
from tandem.policy.snapshot import Complaint, Snapshot
from tandem_core.contract.intent import ChangeRequest, Intent
from tandem_core.contract.records import Undecodable, decode_json
from tandem_core.model.kubernetes_names import REQUEST_ANNOTATION
from tandem_core.routing.errors import FunctionTooLargeError, RoutingError


def next_step(
    context: ReconcileContext, intent: Intent, snapshot: Snapshot, memory: ControllerState
) -> IntentStep | Complaint | None:
    """Return the next step, or why it cannot be taken; None if nothing is to be done now."""
    if context.pipeline is None:
        return None
    now_ms = int(context.moment.wall.timestamp() * 1000)
    asked = read_request(context.listing.resource)
    request, unreadable = (None, asked) if isinstance(asked, Complaint) else (asked, None)
    spec, generation = context.pipeline.spec, context.listing.generation
    pending = [request] if request is not None else []
    wanted = wanted_of(spec, generation, next_request(intent, pending))
    evidence = Evidence(snapshot.lead, build_failures(snapshot, memory), build_obstacles(snapshot))
    codec = RoutingCodec(lambda digest: function_beside(context.recorded.document, digest))
    try:
        step = next_intent(intent, wanted, evidence, codec, now_ms)
    except FunctionTooLargeError as problem:
        return _cannot_assign(
            problem, "use fewer pairs, or move keys back with `tandem move --back`"
        )
    except ShareChanged as problem:
        return _cannot_assign(problem, "this is a bug in Tandem: report it")
    except RoutingError as problem:
        return _cannot_assign(problem)
    return step or unreadable


def _cannot_assign(problem: Exception, hint: str = "") -> Complaint:
    return Complaint("CannotChange", f"keys cannot be assigned to other pairs: {problem}", hint)


def read_request(resource: Object) -> ChangeRequest | Complaint | None:
    """Return the request on a resource, or why it cannot be read; None if there is none."""
    text = annotations_of(resource).get(REQUEST_ANNOTATION)
    if not text:
        return None
    try:
        found = decode_json(text, ChangeRequest)
    except Undecodable as problem:
        return _unreadable(str(problem))
    return found if found.id else _unreadable("its id is empty")


def _unreadable(problem: str) -> Complaint:
    return Complaint(
        "InvalidRequest",
        f"annotation {REQUEST_ANNOTATION} cannot be read: {problem}",
        "remove the annotation and ask again with `tandem move KEY --to PAIR` (in the annotation "
        "`key` is the key's hash, and each request needs a new `id`)",
    )

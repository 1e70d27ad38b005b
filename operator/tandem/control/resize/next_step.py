"""The next step of a change: what manifest and requests want, and what is known of new pairs."""

import base64

from tandem.control.context import ReconcileContext
from tandem.control.resize.requests import next_request, read_request
from tandem.kube.objects import name_of
from tandem.policy.change.codec import RoutingCodec, ShareChanged
from tandem.policy.change.steps import IntentStep, next_intent
from tandem.policy.change.wanted import Evidence, wanted_of
from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.shadows import build_failures, build_obstacles
from tandem.policy.snapshot import Complaint, Snapshot
from tandem_core.contract.intent import Intent
from tandem_core.contract.intent_text import function_key
from tandem_core.routing.errors import RoutingError
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import from_bytes

_REMEDY = "restore it from a backup, or start a new pipeline"


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
    wanted = wanted_of(spec, generation, next_request(intent, request))
    evidence = Evidence(snapshot.lead, build_failures(snapshot, memory), build_obstacles(snapshot))
    codec = RoutingCodec(lambda digest: _function(context, digest))
    try:
        step = next_intent(intent, wanted, evidence, codec, now_ms)
    except (RoutingError, ShareChanged) as problem:
        return Complaint("CannotChange", f"keys cannot be assigned to other pairs: {problem}")
    return step or unreadable


def _function(context: ReconcileContext, digest: str) -> RoutingFunction:
    """Read a routing function beside the intent.

    Raises:
        RoutingError: it is missing, or cannot be read.
    """
    document = context.recorded.document
    form = (document.get("binaryData") or {}).get(function_key(digest))
    where = f"in ConfigMap {name_of(document)}"
    if form is None:
        raise RoutingError(f"{function_key(digest)} is missing {where}; {_REMEDY}")
    try:
        return from_bytes(base64.b64decode(form))
    except ValueError as problem:
        unusable = f"{function_key(digest)} {where} cannot be read: {problem}"
        raise RoutingError(f"{unusable}; {_REMEDY}") from problem

"""Changes of keys that a user asks for by hand, in an annotation of the resource."""

from tandem.kube.kinds import Object
from tandem.kube.objects import annotations_of
from tandem.policy.snapshot import Complaint
from tandem_core.contract.intent import ChangeRequest, Intent
from tandem_core.contract.records import Undecodable, decode_json
from tandem_core.model.kubernetes_names import REQUEST_ANNOTATION
from tandem_core.model.states import ChangeStage


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


def next_request(intent: Intent, asked: ChangeRequest | None) -> ChangeRequest | None:
    """Return the request that counts now: a new one waits until the change under way has ended."""
    change = intent.change
    open_stages = {None, ChangeStage.PLANNED, ChangeStage.ABANDONED}
    is_open = (change.stage if change is not None else None) in open_stages
    return asked if asked is not None and is_open else intent.request


def _unreadable(problem: str) -> Complaint:
    return Complaint(
        "InvalidRequest",
        f"annotation {REQUEST_ANNOTATION} cannot be read: {problem}",
        "remove the annotation and ask again with `tandem move KEY --to PAIR` (in the annotation "
        "`key` is the key's hash, and each request needs a new `id`)",
    )

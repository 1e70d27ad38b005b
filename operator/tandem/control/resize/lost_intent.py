"""Finds out that a pipeline's intent is lost or an old one: names would be used twice.

Only the intent knows which names of pairs and numbers of generations are free. Splits, drivers and
merges keep the last one that they read, so rows flow without it; another one with the same names
could give keys to a pair that had others.
"""

from tandem.control.observe import PipelineObjects
from tandem.kube.objects import name_of
from tandem.policy.snapshot import Complaint
from tandem_core.model.kubernetes_names import intent_name
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.states import Phase
from tandem_core.model.status import Status

_MISSING, _OUTDATED = "IntentMissing", "IntentOutdated"

LOST_INTENT = frozenset({_MISSING, _OUTDATED})
"""Reasons of the complaints."""

_FIRST = 1


def find_lost_intent(
    listing: PipelineObjects, status: Status, manifest: Pipeline | Complaint
) -> Complaint | None:
    """Return why there may be no first intent, or none as old as the one there is.

    None for a new pipeline, and one that is over. One that was never changed may have its first
    intent again.
    """
    recorded = listing.recorded
    if status.phase is Phase.COMPLETED or isinstance(recorded, Complaint):
        return None
    newest, pairs = _newest_generation(listing, status), len(listing.births)
    if recorded is not None:
        is_old = 0 < recorded.intent.next_generation <= newest
        return _outdated(listing, f"generation {newest} existed") if is_old else None
    if newest > _FIRST:
        return _missing(listing, f"generation {newest} existed")
    if isinstance(manifest, Pipeline) and pairs not in {0, manifest.spec.pairs.count}:
        return _missing(listing, f"{pairs} pairs run, not {manifest.spec.pairs.count}")
    return None


def _newest_generation(listing: PipelineObjects, status: Status) -> int:
    """The highest number that a generation has had, as workloads and status tell."""
    known = list(listing.births.values())
    # A refused pipeline starts over, and its status is still that of the former one.
    if status.phase is not Phase.REFUSED:
        target = status.change.target if status.change is not None else 0
        known += [status.generation, target, *(past.generation for past in status.history)]
    return max(known, default=0)


def _missing(listing: PipelineObjects, known: str) -> Complaint:
    name = intent_name(name_of(listing.resource))
    what = f"ConfigMap {name} is missing and cannot be made again from the manifest: {known}"
    return _complaint(_MISSING, name, what)


def _outdated(listing: PipelineObjects, known: str) -> Complaint:
    name = intent_name(name_of(listing.resource))
    return _complaint(_OUTDATED, name, f"ConfigMap {name} is from an old backup: {known}")


def _complaint(reason: str, name: str, what: str) -> Complaint:
    return Complaint(
        reason,
        f"{what}. Rows flow, and nothing is deleted; the operator recovers and changes nothing",
        f"restore ConfigMap {name} from a backup made after the last change, or start a new "
        "pipeline; do not delete splits until then",
    )

"""Finds out that a pipeline's intent is lost or an old one: names would be used twice.

Only the intent knows which names of pairs and numbers of generations are free. Splits, drivers and
merges keep the last one that they read, so rows flow without it; another one with the same names
could give keys to a pair that had others.
"""

from tandem.control.observe import PipelineObjects
from tandem.control.resize.workloads import FIRST_GENERATION
from tandem.kube.objects import name_of
from tandem.policy.snapshot import Complaint
from tandem_core.model.kubernetes_names import intent_name
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.states import Phase
from tandem_core.model.status import Status

_MISSING, _OUTDATED = "IntentMissing", "IntentOutdated"

LOST_INTENT = frozenset({_MISSING, _OUTDATED})
"""Reasons of the complaints."""


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
        return _outdated(listing, newest) if is_old else None
    if newest > FIRST_GENERATION:
        return _missing(listing, newest)
    if isinstance(manifest, Pipeline) and pairs not in {0, manifest.spec.pairs.count}:
        return _uncertain(listing, pairs, manifest.spec.pairs.count)
    return None


def _newest_generation(listing: PipelineObjects, status: Status) -> int:
    """The highest number that a generation has had, as workloads and status tell."""
    known = list(listing.births.values())
    # A refused pipeline starts over, and its status is still that of the former one.
    if status.phase is not Phase.REFUSED:
        target = status.change.target if status.change is not None else 0
        known += [status.generation, target, *(past.generation for past in status.history)]
    return max(known, default=0)


def _missing(listing: PipelineObjects, newest: int) -> Complaint:
    name = intent_name(name_of(listing.resource))
    changed = f"Pairs have been changed (up to generation {newest})"
    unknown = "only this ConfigMap knows which names are free, so the operator writes no new one"
    what = f"ConfigMap {name} is missing. {changed}, and {unknown}"
    return Complaint(_MISSING, f"{what}. {_idle('it')}", _restore(name))


def _outdated(listing: PipelineObjects, newest: int) -> Complaint:
    name = intent_name(name_of(listing.resource))
    what = f"ConfigMap {name} is older than the last change (generation {newest})"
    return Complaint(_OUTDATED, f"{what}. {_idle('a newer one')}", _restore(name))


def _uncertain(listing: PipelineObjects, pairs: int, wanted: int) -> Complaint:
    name = intent_name(name_of(listing.resource))
    what = f"ConfigMap {name} is missing; {pairs} pairs run and the manifest asks for {wanted}"
    first = f"set spec.pairs.count to {pairs} if pairs were never changed; else {_restore(name)}"
    return Complaint(_MISSING, f"{what}. {_idle('it')}", first)


def _idle(awaited: str) -> str:
    return f"Rows flow; until {awaited} is back the operator repairs, changes and deletes nothing"


def _restore(name: str) -> str:
    made = "from a backup made after the last change"
    meanwhile = "do not delete splits until then"
    return f"restore ConfigMap {name} {made}, or start a new pipeline; {meanwhile}"

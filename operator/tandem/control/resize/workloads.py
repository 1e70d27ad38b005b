"""Which pairs, splits and merge slots have pods, from intent, listed objects and the lead's report.

Nothing is taken from a pipeline that its lead may still count on. Without a fresh report of the
lead everything stays.
"""

from collections.abc import Mapping

from tandem.control.observe import PipelineObjects
from tandem.manifests.desired_state import PairWorkload, Workloads
from tandem.policy.change.generations import building_generation, new_pairs
from tandem.policy.change.roster import SplitsThere, pairs_to_run, slots_to_run, splits_to_run
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import MemberKind

FIRST_GENERATION = 1
"""The birth of pairs in intents of older versions, which do not tell it."""


def workloads_to_run(
    intent: Intent, splits: int, listing: PipelineObjects, lead: LeadReport | None
) -> Workloads:
    """Return what has pods; `splits` is the manifest's number, for intents of older versions.

    A pair that the lead still lists runs on although the intent no longer has it.
    """
    births = {**listing.births, **births_of(intent)}
    building = building_generation(intent)
    shadows = new_pairs(building) if building is not None else ()
    pairs = pairs_to_run(intent, lead, sorted(listing.births))
    return Workloads(
        pairs=tuple(PairWorkload(name, births[name], name in shadows) for name in sorted(pairs)),
        splits=splits_to_run(intent.splits or splits, listing.splits, _split_pods(listing), lead),
        slots=slots_to_run(intent, lead, listing.slots),
    )


def births_of(intent: Intent) -> Mapping[str, int]:
    """Return the generation that each pair of an intent was born in."""
    return {
        pair.name: pair.birth or FIRST_GENERATION
        for generation in intent.generations
        for pair in generation.pairs
    }


def _split_pods(listing: PipelineObjects) -> SplitsThere:
    pods = [pod for pod in listing.pods if pod.place.kind is MemberKind.SPLIT and not pod.over]
    return SplitsThere(staying=sum(not pod.going for pod in pods), all=len(pods))

"""What a change waits for, at each stage, as `status.change` tells it."""

from collections.abc import Sequence

from tandem.policy.change.wanted import Evidence
from tandem_core.contract.intent import Generation, Intent


def why_not_begun(intent: Intent, target: Generation, evidence: Evidence) -> str:
    """Return what a change has to wait for; "" if it can begin."""
    lead = evidence.lead
    if lead is None:
        return "waits until a split reports that it leads"
    if lead.generation not in {0, intent.target}:
        return f"waits for the cut of generation {intent.target}"
    names = target.names()
    left = [known.name for known in lead.pairs if known.name not in names]
    if left:
        return f"waits until {left[0]} is retired"
    return _why_not_whole(intent, target, evidence)


def why_not_synced(intent: Intent, pairs: Sequence[str], evidence: Evidence) -> str:
    """Return how many replicas are synced while some are not; "" once all are."""
    synced = [min(evidence.synced(pair), intent.replicas) for pair in pairs]
    wanted = len(pairs) * intent.replicas
    return f"{sum(synced)} of {wanted} replicas synced" if sum(synced) < wanted else ""


def why_not_retired(intent: Intent, target: Generation, evidence: Evidence, *, then: bool) -> str:
    """Return what keeps replaced pairs from retiring, and whether another change is to follow.

    "" if nothing is known but that every sink needs an epoch of the new pairs.
    """
    following = "then the change that was asked for meanwhile begins" if then else ""
    waits = (_why_not_whole(intent, target, evidence), following)
    return "; ".join(filter(None, waits))


def _why_not_whole(intent: Intent, target: Generation, evidence: Evidence) -> str:
    weak = [name for name in target.names() if evidence.full(name) < intent.replicas]
    return f"waits until {weak[0]} has all its replicas" if weak else ""

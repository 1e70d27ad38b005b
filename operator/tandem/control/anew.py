"""How a pipeline that was refused before anything was computed begins anew with another manifest.

What its splits have taken in is of the old manifest, so everything goes before anything new comes:
first what makes pods, then the pods, then register and intent.
"""

from tandem.control.apply import Changes, carry_out, changes, list_objects
from tandem.control.intent import Recorded, forget_records
from tandem.control.keys import Key
from tandem.control.observe import Listing
from tandem.kube.port import Kube
from tandem.model.states import Phase
from tandem.policy.reports import MergeReport
from tandem.policy.snapshot import Complaint, Snapshot

TOO_LATE = Complaint(
    "SpecChanged",
    "the manifest is another one than that which this pipeline has begun with",
    "apply the old one again, or the new one under another name",
)


def may_begin_anew(phase: Phase, snapshot: Snapshot) -> bool:
    """Whether the pipeline was refused, and nothing was computed since the status was written.

    A lead or a merge has to say so: a status may be old.
    """
    reports = [member.report for member in snapshot.members if member.report is not None]
    merges = [each.part.delivered for each in reports if isinstance(each.part, MergeReport)]
    replicas = [each.replica.committed for each in reports if each.replica is not None]
    lead = snapshot.lead
    told = [*merges, *([lead.delivered] if lead is not None else [])]
    return phase is Phase.REFUSED and bool(told) and not any((*told, *replicas))


def clear(kube: Kube, key: Key, listing: Listing, recorded: Recorded) -> Complaint | None:
    """Take away what the old manifest has brought; what is still in the way. May be done again.

    Raises:
        Conflict: somebody else has done it meanwhile.
    """
    there = list_objects(kube, key)
    gone = Changes(delete=changes((), there, listing.uid).delete)
    complaint = carry_out(kube, gone, listing.uid)
    if complaint is not None:
        return complaint
    if listing.pods:
        return Complaint("BeginsAnew", "the pods of the old manifest have to end first")
    forget_records(kube, key, listing.uid, recorded)
    return None

"""Resets a pipeline that was refused before anything was computed, to run another manifest.

Its splits have ingested rows under the old manifest, so everything is deleted before anything new
is created: first the workloads, then the pods, then register and intent.
"""

from tandem.control.apply import Changes, carry_out, changes, list_objects
from tandem.control.intent_store import Recorded, forget_records
from tandem.control.observe import PipelineObjects
from tandem.control.types import Key
from tandem.kube.port import Kube
from tandem.policy.snapshot import Complaint, Snapshot
from tandem.policy.status.steps import Action, Note, Step, ignore
from tandem_core.model.states import SPEC_CHANGED, Phase

CHANGED_TOO_LATE = Complaint(
    SPEC_CHANGED,
    "the manifest differs from the one that this pipeline was started with",
    "apply the former manifest again, or the new one under another name",
)

RESET_REASON = "the manifest changed before anything was computed"
"""Why the objects of the old manifest are deleted."""


def can_reset(phase: Phase, snapshot: Snapshot) -> bool:
    """Whether the pipeline was refused, and nothing was computed since the status was written.

    A lead or a merge has to report so: a status may be old.
    """
    reports = [member.report for member in snapshot.members if member.report is not None]
    merges = [each.merge.delivered for each in reports if each.merge is not None]
    replicas = [each.replica.committed for each in reports if each.replica is not None]
    lead = snapshot.lead
    told = [*merges, *([lead.delivered] if lead is not None else [])]
    return phase is Phase.REFUSED and bool(told) and not any((*told, *replicas))


def clear(
    kube: Kube, key: Key, listing: PipelineObjects, recorded: Recorded, note: Note = ignore
) -> Complaint | None:
    """Delete the objects of the old manifest; return what is still in the way. May be repeated.

    Raises:
        Conflict: another operator has done it meanwhile.
    """
    there = list_objects(kube, key)
    gone = Changes(delete=changes((), there, listing.uid).delete)
    complaint = carry_out(kube, gone, listing.uid, note)
    if complaint is not None:
        return complaint
    if listing.pods:
        return Complaint("Resetting", "waiting for the pods of the former manifest to end")
    forget_records(kube, key, listing.uid, recorded)
    note(Step(Action.DELETE, "register and intent", RESET_REASON))
    return None

"""Observes a pipeline on a cluster once: its status, pods and lead."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tandem.control.pods import Pod, read_pod
from tandem.control.types import Key
from tandem.kube.kinds import LEASE, POD, Object
from tandem.kube.objects import name_of, namespace_of
from tandem.kube.port import Kube, NotFound, Refused, Shell
from tandem.remote.commands import ask_lead
from tandem.remote.members import active_merges, epochs_of, members_of
from tandem.remote.targets import in_order
from tandem_core.contract.reports import LeadReport
from tandem_core.contract.volume_ids import pod_volume
from tandem_core.model.kubernetes_names import PIPELINE_LABEL, register_name
from tandem_core.model.pipeline import status_in
from tandem_core.model.status import Status


@dataclass(frozen=True, slots=True)
class PipelinePods:
    """The pods of a pipeline that are not terminating, and the lead among them."""

    key: Key
    pods: tuple[Pod, ...]
    lead: Pod | None


@dataclass(frozen=True, slots=True)
class RemotePipeline:
    """The observed state of a pipeline, with its members."""

    cast: PipelinePods
    status: Status
    word: LeadReport | None
    """The lead's report; None if it could not be read."""

    def epochs(self) -> Mapping[str, int]:
        """Return the last epoch of members, by name."""
        return epochs_of(self.cast.pods, self.word)

    def titles(self) -> Mapping[str, str]:
        """Return the titles of the lead and of active merges, by name."""
        active = active_merges(self.word) or frozenset()
        titles = {pod.name: "active" for pod in self.cast.pods if pod.uid in active}
        return titles | ({self.cast.lead.name: "lead"} if self.cast.lead is not None else {})


def cast_of(kube: Kube, resource: Object) -> PipelinePods:
    """Return the pods of a pipeline and its lead.

    Raises:
        KubeError: the cluster does not answer, or does not allow it.
    """
    key = Key(namespace_of(resource) or "", name_of(resource))
    found = kube.list(POD, key.namespace, {PIPELINE_LABEL: key.name})
    pods = in_order(pod for pod in map(read_pod, found) if pod is not None)
    volume = pod_volume(_holder(kube, key))
    lead = next((pod for pod in pods if volume is not None and pod.uid == volume.pod), None)
    return PipelinePods(key, pods, lead)


def look_at(kube: Kube, shell: Shell, resource: Object) -> RemotePipeline:
    """Observe a pipeline; the lead's report is included if exec is allowed.

    Raises:
        KubeError: the cluster does not answer, or does not allow it.
    """
    cast = cast_of(kube, resource)
    word = ask_lead(shell, cast.lead) if cast.lead is not None else None
    status = status_in(resource)
    members = members_of(cast.pods, status, word)
    return RemotePipeline(cast, replace(status, members=members), word)


def _holder(kube: Kube, key: Key) -> str:
    """Return the volume that holds the register; empty if none does or access is denied."""
    try:
        register = kube.get(LEASE, key.namespace, register_name(key.name))
    except (NotFound, Refused):
        return ""
    return str((register.get("spec") or {}).get("holderIdentity") or "")

"""Applies, observes and disturbs a pipeline on the cluster, and waits for it."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.steps import ask
from cluster.trial.pods import Object, TrialPod, replicas
from cluster.trial.space import Space
from cluster.trial.status_checks import condition_of, missing_pods, shortcomings
from cluster.trial.waiting import InVain, until, until_none
from cluster.trial.watching import Events, Told, in_order
from tandem.kube.kinds import LEASE, SECRET, STREAM_PIPELINE
from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import MemberReport, decode_report
from tandem_core.contract.volume_ids import pod_volume
from tandem_core.model.kubernetes_names import (
    HTTP_PORT,
    TOKEN_FILE,
    TOKEN_KEY,
    register_name,
    token_name,
)
from tandem_core.model.states import ConditionType, MemberKind, Role
from tandem_runtime.environment.lease_register import place_of

WHOLE_WITHIN = 240.0
"""Seconds in which all drivers of a pipeline start on a busy machine."""

NAMED_WITHIN = 60.0
"""Seconds until another pod has taken over the role of a deleted one."""
PLACED_WITHIN = 240.0
"""Seconds until repeated deletions have placed lead and active merge."""

_TANDEM = Path(sys.executable).with_name("tandem")

_ASK_STATE = f"""
from pathlib import Path
from urllib.request import Request, urlopen
token = Path("/{TOKEN_FILE}").read_text().strip()
request = Request("http://127.0.0.1:{HTTP_PORT}/state")
request.add_header("Authorization", "Bearer " + token)
print(urlopen(request, timeout=5).read().decode())
"""


class TrialPipeline:
    """One `StreamPipeline` on the cluster."""

    def __init__(self, space: Space, document: Object) -> None:
        self.space = space
        self.document = document
        self.name: str = document["metadata"]["name"]
        self.events = Events(space.events, self.name)

    def apply(self) -> None:
        """`kubectl apply`."""
        self.space.apply(self.document)

    def delete(self) -> None:
        """`kubectl delete`, without waiting."""
        self.space.kubectl("delete", "streampipeline", self.name, "--wait=false")

    # --- observing ----------------------------------------------------------------------------

    def resource(self) -> Object:
        """The resource."""
        return self.space.api.get(STREAM_PIPELINE, self.space.name, self.name)

    def status(self) -> Object:
        """The status; empty before the first one."""
        found: Object = self.resource().get("status") or {}
        return found

    def condition(self, kind: ConditionType) -> Object:
        """A condition of the status; empty if the status lacks it."""
        return condition_of(self.resource(), kind)

    def pods(self) -> list[TrialPod]:
        """All pods of the pipeline."""
        return self.space.pods(self.name)

    def replica(self, pair: str, role: Role) -> TrialPod:
        """The replica of a pair with a role, by its labels."""
        found = [pod for pod in replicas(self.pods(), pair, role) if not pod.going]
        if len(found) != 1:
            raise InVain(f"{role} of {pair}: {found}")
        return found[0]

    def lead(self) -> TrialPod:
        """The split that leads, according to the register."""
        return until(self._lead, NAMED_WITHIN, "a split that is there leads")

    def _lead(self) -> TrialPod | None:
        lease = self.space.api.get(LEASE, self.space.name, register_name(self.name))
        return self._on_volume(place_of(lease).lead)

    def other_splits(self) -> list[TrialPod]:
        """The splits that do not lead."""
        lead = self.lead()
        return [pod for pod in self.splits() if pod.uid != lead.uid]

    def splits(self) -> list[TrialPod]:
        """All splits, including the lead."""
        return [pod for pod in self.pods() if pod.kind == MemberKind.SPLIT]

    def merges(self) -> list[TrialPod]:
        """The merges, active or not."""
        return [pod for pod in self.pods() if pod.kind == MemberKind.MERGE]

    def active_merge(self) -> TrialPod:
        """The merge that delivers, according to the lead."""
        return until(self._active_merge, NAMED_WITHIN, "a merge that is there delivers")

    def _active_merge(self) -> TrialPod | None:
        lead = self.report_of(self.lead()).lead
        merges = lead.merges if lead is not None else ()
        volume = next((merge.volume for merge in merges if merge.slot == 0), "")
        return self._on_volume(volume)

    def place_lead_and_merge(self, node: str, *, there: bool) -> None:
        """Move lead and active merge to a node, or off it, by deleting misplaced pods."""
        until(lambda: self._are_placed(node, there), PLACED_WITHIN, "lead and merge in place")
        self.until_whole()

    def _are_placed(self, node: str, there: bool) -> bool:
        deciding = (self.lead(), self.active_merge())
        misplaced = [pod for pod in deciding if (pod.node == node) is not there]
        for pod in misplaced:
            self.space.kubectl("delete", "pod", pod.name)
        if misplaced:
            self.until_whole()
        return not misplaced

    def report_of(self, pod: TrialPod) -> MemberReport:
        """The report of a pod's process."""
        said = self.space.execute(pod.name, "python", "-c", _ASK_STATE)
        try:
            return decode_report(said)
        except Undecodable as problem:
            raise InVain(f"{pod.name} says {said}") from problem

    def token(self) -> str:
        """The pipeline's token."""
        secret = self.space.api.get(SECRET, self.space.name, token_name(self.name))
        return base64.b64decode(secret["data"][TOKEN_KEY]).decode()

    def _on_volume(self, volume: str) -> TrialPod | None:
        """The pod of a volume, unless it is gone or being deleted."""
        parts = pod_volume(volume)
        staying = (pod for pod in self.pods() if not pod.going)
        return next((pod for pod in staying if parts and pod.uid == parts.pod), None)

    def tandem(self, *arguments: str) -> str:
        """Run the `tandem` command on the pipeline's namespace; return its output.

        Raises:
            StepFailed: it failed; the message has its error output.
        """
        where = ["--namespace", self.space.name]
        return ask([_TANDEM, *arguments, *where], env=self.space.cluster.env)

    # --- disturbing ---------------------------------------------------------------------------

    def delete_now(self, *pods: TrialPod) -> None:
        """`kubectl delete pod --force`, all pods at once."""
        names = [pod.name for pod in pods]
        force = ["--force", "--grace-period=0", "--wait=false"]
        self.space.kubectl("delete", "pod", *names, *force)

    def kill_inside(self, target: str, pod: TrialPod) -> None:
        """`tandem kill` of a target, which is `pod`; return when its container has restarted."""
        self.tandem("kill", target, "--pipeline", self.name)
        until(lambda: self._restarts(pod) > pod.restarts, 60, f"{pod.name} is started again")

    def _restarts(self, pod: TrialPod) -> int:
        return next(each.restarts for each in self.pods() if each.uid == pod.uid)

    # --- waiting ------------------------------------------------------------------------------

    def until_whole(self, limit: float = WHOLE_WITHIN) -> float:
        """Wait until pods, pairs and status are as they should be; return the seconds it took."""
        began = time.monotonic()
        until_none(self.shortcomings, limit, f"{self.name} is whole")
        return time.monotonic() - began

    def shortcomings(self) -> list[str]:
        """What `until_whole` still waits for."""
        return shortcomings(self.resource(), self.pods())

    def until_replaced(self, limit: float = WHOLE_WITHIN) -> None:
        """Wait until all pods are ready, regardless of the status."""
        spec = self.resource()["spec"]
        until_none(lambda: missing_pods(spec, self.pods()), limit, f"{self.name} has all its pods")

    def until_told(self, mark: int, subject: str, reasons: Sequence[str]) -> None:
        """Wait for events about a subject whose reasons first occur in this order.

        Raises:
            InVain: they do not occur, or in another order.
        """
        until(
            lambda: {each.reason for each in self._told(mark, subject)} >= set(reasons),
            WHOLE_WITHIN,
            f"events {', '.join(reasons)} of {subject}",
        )
        told = self._told(mark, subject)
        if not in_order(told, subject, reasons):
            raise InVain(f"events in another order: {told}")

    def _told(self, mark: int, subject: str) -> list[Told]:
        return [each for each in self.events.since(mark) if each.subject == subject]

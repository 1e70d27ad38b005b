"""A pipeline on the cluster: applied, looked at, waited for."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.steps import ask
from cluster.trial.judging import condition_of, missing_pods, shortcomings
from cluster.trial.pods import Object, Pod, replicas
from cluster.trial.space import Space
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
"""Seconds that all drivers of a pipeline may take to start on a busy machine."""

NAMED_WITHIN = 60.0
"""Seconds until somebody else is what one was that has been deleted."""
PLACED_WITHIN = 240.0
"""Seconds until deleting them has brought lead and merge where they should be."""

_TANDEM = Path(sys.executable).with_name("tandem")

_ASK_STATE = f"""
from pathlib import Path
from urllib.request import Request, urlopen
token = Path("/{TOKEN_FILE}").read_text().strip()
request = Request("http://127.0.0.1:{HTTP_PORT}/state")
request.add_header("Authorization", "Bearer " + token)
print(urlopen(request, timeout=5).read().decode())
"""


class Pipeline:
    """One `StreamPipeline`."""

    def __init__(self, space: Space, document: Object) -> None:
        self.space = space
        self.document = document
        self.name: str = document["metadata"]["name"]
        self.events = Events(space.events, self.name)

    def apply(self) -> None:
        """`kubectl apply`."""
        self.space.apply(self.document)

    def delete(self) -> None:
        """`kubectl delete`, without waiting for its end."""
        self.space.kubectl("delete", "streampipeline", self.name, "--wait=false")

    # --- looking ------------------------------------------------------------------------------

    def resource(self) -> Object:
        """The resource as it stands."""
        return self.space.api.get(STREAM_PIPELINE, self.space.name, self.name)

    def status(self) -> Object:
        """Its status; empty before the first one."""
        found: Object = self.resource().get("status") or {}
        return found

    def condition(self, kind: ConditionType) -> Object:
        """A condition; empty if it is not there."""
        return condition_of(self.resource(), kind)

    def pods(self) -> list[Pod]:
        """All pods."""
        return self.space.pods(self.name)

    def replica(self, pair: str, role: Role) -> Pod:
        """The replica of a pair that is labelled with a role."""
        found = [pod for pod in replicas(self.pods(), pair, role) if not pod.going]
        if len(found) != 1:
            raise InVain(f"{role} of {pair}: {found}")
        return found[0]

    def lead(self) -> Pod:
        """The split that leads, by the register."""
        return until(self._lead, NAMED_WITHIN, "a split that is there leads")

    def _lead(self) -> Pod | None:
        lease = self.space.api.get(LEASE, self.space.name, register_name(self.name))
        return self._on_volume(place_of(lease).lead)

    def other_splits(self) -> list[Pod]:
        """The splits that do not lead."""
        lead = self.lead()
        return [pod for pod in self.splits() if pod.uid != lead.uid]

    def splits(self) -> list[Pod]:
        """The splits, whoever leads."""
        return [pod for pod in self.pods() if pod.kind == MemberKind.SPLIT]

    def merges(self) -> list[Pod]:
        """The merges, active or not."""
        return [pod for pod in self.pods() if pod.kind == MemberKind.MERGE]

    def active_merge(self) -> Pod:
        """The merge that delivers, by the word of the lead."""
        return until(self._active_merge, NAMED_WITHIN, "a merge that is there delivers")

    def _active_merge(self) -> Pod | None:
        lead = self.report_of(self.lead()).lead
        merges = lead.merges if lead is not None else ()
        volume = next((merge.volume for merge in merges if merge.slot == 0), "")
        return self._on_volume(volume)

    def place_lead_and_merge(self, node: str, *, there: bool) -> None:
        """See to it that lead and active merge are both on a node, or both not; who is not goes."""
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

    def report_of(self, pod: Pod) -> MemberReport:
        """What a process says of itself."""
        said = self.space.execute(pod.name, "python", "-c", _ASK_STATE)
        try:
            return decode_report(said)
        except Undecodable as problem:
            raise InVain(f"{pod.name} says {said}") from problem

    def token(self) -> str:
        """The pipeline's token."""
        secret = self.space.api.get(SECRET, self.space.name, token_name(self.name))
        return base64.b64decode(secret["data"][TOKEN_KEY]).decode()

    def _on_volume(self, volume: str) -> Pod | None:
        """The pod of a volume, if it is there and stays."""
        parts = pod_volume(volume)
        staying = (pod for pod in self.pods() if not pod.going)
        return next((pod for pod in staying if parts and pod.uid == parts.pod), None)

    def tandem(self, *arguments: str) -> str:
        """Run the `tandem` command on the pipeline's namespace; what it prints.

        Raises:
            StepFailed: it failed; the message has its error output.
        """
        where = ["--namespace", self.space.name]
        return ask([_TANDEM, *arguments, *where], env=self.space.cluster.env)

    # --- disturbing ---------------------------------------------------------------------------

    def delete_now(self, *pods: Pod) -> None:
        """`kubectl delete pod --force` of pods, all at once."""
        names = [pod.name for pod in pods]
        force = ["--force", "--grace-period=0", "--wait=false"]
        self.space.kubectl("delete", "pod", *names, *force)

    def kill_inside(self, target: str, pod: Pod) -> None:
        """`tandem kill` of a target, which is that pod; returns when it has been started again."""
        self.tandem("kill", target, "--pipeline", self.name)
        until(lambda: self._restarts(pod) > pod.restarts, 60, f"{pod.name} is started again")

    def _restarts(self, pod: Pod) -> int:
        return next(each.restarts for each in self.pods() if each.uid == pod.uid)

    # --- waiting ------------------------------------------------------------------------------

    def until_whole(self, limit: float = WHOLE_WITHIN) -> float:
        """Wait until everybody is there, paired, and said to be so; the seconds that it took."""
        began = time.monotonic()
        until_none(self.shortcomings, limit, f"{self.name} is whole")
        return time.monotonic() - began

    def shortcomings(self) -> list[str]:
        """What is missing until then."""
        return shortcomings(self.resource(), self.pods())

    def until_replaced(self, limit: float = WHOLE_WITHIN) -> None:
        """Wait until everybody is there, whether or not the status says so."""
        spec = self.resource()["spec"]
        until_none(lambda: missing_pods(spec, self.pods()), limit, f"{self.name} has all its pods")

    def until_told(self, mark: int, subject: str, reasons: Sequence[str]) -> None:
        """Wait for events about a subject, each for the first time in this order.

        Raises:
            InVain: they do not come, or in another order.
        """
        until(
            lambda: {each.reason for each in self._told(mark, subject)} >= set(reasons),
            WHOLE_WITHIN,
            f"{', '.join(reasons)} of {subject} are told",
        )
        told = self._told(mark, subject)
        if not in_order(told, subject, reasons):
            raise InVain(f"told in another order: {told}")

    def _told(self, mark: int, subject: str) -> list[Told]:
        return [each for each in self.events.since(mark) if each.subject == subject]

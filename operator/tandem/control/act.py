"""Carries out decisions about pods; each destructive one is confirmed live right before.

A pod is read again and deleted only if it is still the same one. The twin that is to serve the
pair is asked again and must itself report that it holds the state.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tandem.control.events import OperatorEventReason, PipelineEvent
from tandem.control.members import Members
from tandem.control.observe import ClusterView
from tandem.control.pods import Pod, read_pod
from tandem.kube.kinds import POD
from tandem.kube.objects import labels_of, namespace_of
from tandem.kube.port import Conflict, Kube, KubeError, NotFound
from tandem.policy.controller_state import ControllerState
from tandem.policy.decisions import Adopt, AssignSpare, Decision, EvictPod, Kill, Replace
from tandem.policy.recovery.pairs import look_at
from tandem.policy.snapshot import Complaint, Snapshot
from tandem.policy.status.steps import Action, Note, Step, held, ignore, step_of
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.volume_ids import pod_volume
from tandem_core.model.kubernetes_names import (
    COMPONENT_LABEL,
    GENERATION_LABEL,
    KIND_LABEL,
    PAIR_LABEL,
    ROLE_LABEL,
)
from tandem_core.model.states import MemberKind, Role

_COST = "controller.kubernetes.io/pod-deletion-cost"
"""A ReplicaSet with surplus pods deletes those with the lowest cost first."""
_ASSIGNED_COST = "100"
NOT_CONFIRMED = "the check of the live pods did not confirm it"

AboutPod = Kill | Replace | EvictPod | AssignSpare | Adopt
"""A decision about one pod."""


@dataclass(frozen=True, slots=True)
class ActionFailure:
    """An action that the API server did not carry out; it is retried."""

    why: Complaint


class Acted(NamedTuple):
    """What became of the decisions about pods."""

    failure: Complaint | None
    """Why the last action that failed did."""
    changed: bool
    """Whether pods may have changed since they were listed."""


@dataclass(frozen=True, slots=True)
class Actuator:
    """Acts on a pipeline's pods as they were observed."""

    kube: Kube
    members: Members
    token: str
    sight: ClusterView
    limits: Timeouts
    births: Mapping[str, int]
    """The generation that each pair was born in."""
    note: Note = ignore
    """Receives each step that was done or is left to the next reconcile."""

    def act(self, decisions: Iterable[Decision]) -> Iterator[PipelineEvent | ActionFailure]:
        """Carry out the decisions about pods, one after the other; yield an event for each action.

        A decision about a pod that has changed since it was observed is left to the next
        reconcile. An action that the API server does not carry out yields an `ActionFailure`.
        """
        for decision in (each for each in decisions if isinstance(each, AboutPod)):
            what = step_of(decision).text
            try:
                yield from self._tell(decision)
            except (Conflict, NotFound) as problem:
                self.note(held(decision, str(problem)))
            except KubeError as problem:
                self.note(held(decision, str(problem)))
                yield ActionFailure(
                    Complaint("PodActionFailed", f"{what} ({decision.reason}): {problem}")
                )

    def _tell(self, decision: AboutPod) -> Iterator[PipelineEvent]:
        """Act, and note whether the live check confirmed it. Assigning a spare is no event."""
        told = tuple(self._act(decision))
        done = told or isinstance(decision, AssignSpare)
        self.note(step_of(decision) if done else held(decision, NOT_CONFIRMED))
        yield from told

    def _act(self, decision: AboutPod) -> Iterator[PipelineEvent]:
        match decision:
            case Kill(name, reason):
                pod = self._confirmed(name)
                if self.members.ask(pod, self.token) is None and self._twin_holds(name):
                    yield from self._delete(pod, OperatorEventReason.POD_KILLED, reason)
            case Replace(name, _, reason):
                pod = self._confirmed(name)
                if pod.over or not self._holds(pod):
                    yield from self._delete(pod, OperatorEventReason.POD_REPLACED, reason)
            case EvictPod(name, _, reason):
                pod = self._confirmed(name)
                spared = self._twin_holds(name) if pod.place.pair else self._nothing_at_risk()
                if spared:
                    # An eviction, since another client may be about to disrupt the twin.
                    self.kube.evict(pod.document)
                    yield PipelineEvent(
                        OperatorEventReason.POD_EVICTED, f"{pod.name} evicted: {reason}"
                    )
            case AssignSpare(spare, name):
                pair = self.sight.snapshot.named(name).place.pair or ""
                yield from self._assign(self._confirmed(spare), pair)
            case Adopt(name, pair, reason):
                pod = self._confirmed(name)
                # While still ready as a spare, the budget would count it as a holder of state.
                if not pod.ready and pair in self.births:
                    yield from self._adopt(pod, pair, reason)

    # --- confirming ---------------------------------------------------------------------------

    def _confirmed(self, name: str) -> Pod:
        """Read the pod again; it must be the one that was observed, and not be deleted yet.

        Raises:
            Conflict, NotFound: it is not.
        """
        seen = self.sight.pods[name]
        now = read_pod(self.kube.get(POD, namespace_of(seen.document), name))
        if now is None or now.uid != seen.uid or now.going:
            raise Conflict(f"{name} has changed since it was observed")
        return now

    def _twin_holds(self, name: str) -> bool:
        """Whether the twin answers now, on the volume of its seat, and holds a verified state."""
        place = self.sight.snapshot.named(name).place
        twin = look_at(self.sight.snapshot, place.pair or "", self.limits).twin_of(name)
        if twin is None or twin.seat is None or twin.member.name not in self.sight.pods:
            return False
        report = self.members.ask(self._confirmed(twin.member.name), self.token)
        return (
            report is not None
            and report.volume == twin.seat.volume
            and report.replica is not None
            and report.replica.verified
        )

    def _holds(self, pod: Pod) -> bool:
        """Whether a replica answers now and holds a verified state."""
        report = self.members.ask(pod, self.token)
        return report is not None and report.replica is not None and report.replica.verified

    def _nothing_at_risk(self) -> bool:
        """Whether the lead answers now and reports that everything exists twice."""
        volume = pod_volume(self.sight.snapshot.lead_volume or "")
        uid = volume.pod if volume is not None else None
        pod = next((each for each in self.sight.pods.values() if each.uid == uid), None)
        report = self.members.ask(pod, self.token) if pod is not None else None
        lead = report.lead if report is not None else None
        return lead is not None and not lead.vulnerable

    # --- doing --------------------------------------------------------------------------------

    def _delete(
        self, pod: Pod, notice: OperatorEventReason, reason: str
    ) -> Iterator[PipelineEvent]:
        self.kube.delete(pod.document)
        yield PipelineEvent(notice, f"{pod.name} deleted: {reason}")

    def _adopt(self, pod: Pod, pair: str, reason: str) -> Iterator[PipelineEvent]:
        """Label a spare as a replica: the pair's ReplicaSet adopts it and needs no new one."""
        labels = {
            KIND_LABEL: str(MemberKind.REPLICA),
            COMPONENT_LABEL: str(MemberKind.REPLICA),
            PAIR_LABEL: pair,
            GENERATION_LABEL: str(self.births[pair]),
            ROLE_LABEL: str(Role.SECONDARY),
        }
        self.kube.mark(pod.document, labels, {_COST: _ASSIGNED_COST})
        yield PipelineEvent(OperatorEventReason.SPARE_USED, f"{pod.name} joins {pair}: {reason}")

    def _assign(self, pod: Pod, pair: str) -> Iterator[PipelineEvent]:
        """Tell a spare which pair to join; delete one that cannot be assigned.

        The call is repeated to the same spare, not made to another one.
        """
        try:
            self.members.assign(pod, self.token, pair)
        except OSError as problem:
            why = f"it could not be assigned to {pair}: {problem}"
            yield from self._delete(pod, OperatorEventReason.SPARE_FAILED, why)
            self.note(Step(Action.DELETE, f"Pod {pod.name}", why, (pod.name,)))

    def label(self, pod: Pod, role: Role) -> ActionFailure | None:
        """Write a replica's role into its label; a pod that is gone needs none."""
        step = Step(Action.LABEL, f"{pod.name} as {role}", "its label is outdated", (pod.name,))
        try:
            self.kube.mark(pod.document, {ROLE_LABEL: str(role)}, {})
        except (Conflict, NotFound):
            return None
        except KubeError as problem:
            self.note(replace(step, action=Action.WAIT, subject=step.text, reason=str(problem)))
            return ActionFailure(Complaint("PodActionFailed", f"{step.text}: {problem}"))
        self.note(step)
        return None


def outdated_labels(
    pods: Iterable[Pod], snapshot: Snapshot, memory: ControllerState
) -> Iterator[tuple[Pod, Role]]:
    """Replicas whose role label is wrong, with the right role; terminating pods included.

    Only current pairs have a primary: by that label autoscalers count pods.
    """
    volumes = {member.name: member.volume for member in snapshot.members}
    for pod in pods:
        label, primary = labels_of(pod.document).get(ROLE_LABEL), _primary_of(pod, snapshot, memory)
        if primary is None and label != Role.PRIMARY:
            continue
        is_primary = primary is not None and volumes.get(pod.name) == primary
        role = Role.PRIMARY if is_primary else Role.SECONDARY
        if label != role:
            yield pod, role


def _primary_of(pod: Pod, snapshot: Snapshot, memory: ControllerState) -> str | None:
    """The volume of the primary of a pod's pair; None if the pair has none or is not current."""
    pair = pod.place.pair
    return memory.pair(pair).primary if pair is not None and snapshot.is_current(pair) else None

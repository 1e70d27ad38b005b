"""The loop of one pipeline: observe, decide, record, act, publish, apply.

No state here needs to survive the operator: it is restored from the intent and the status. The
operator may die after any step; the next one continues from there.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tandem.control.act import ActionFailure, Actuator, outdated_labels
from tandem.control.admission import judge
from tandem.control.apply import carry_out, changes, list_objects, wanted
from tandem.control.context import PipelineState, ReconcileContext
from tandem.control.events import event_of_record
from tandem.control.intent_store import (
    NameConflict,
    Recorded,
    check_records,
    create_records,
    read_token,
    record_ending,
    revise_intent,
    swap_intent,
)
from tandem.control.members import Members
from tandem.control.nodes import Node
from tandem.control.observe import TAKEN, ClusterView, PipelineObjects, list_pipeline, observe_pods
from tandem.control.publish import Publisher, Troubles
from tandem.control.reset import CHANGED_TOO_LATE, RESET_REASON, can_reset, clear
from tandem.control.types import Instant, Key, Meter
from tandem.kube.port import Kube, KubeError, Refused, Unreachable
from tandem.manifests.desired_state import Images
from tandem.manifests.workloads import replica_mark
from tandem.output.json_logs import DecisionLog
from tandem.policy.controller_state import remembered
from tandem.policy.decide import Outcome, decide
from tandem.policy.decisions import Complete, Decision, Halt, Promote, RecordEvent, Wait, Withhold
from tandem.policy.recovery.pods import recover_pods
from tandem.policy.snapshot import Complaint
from tandem.policy.status.decision_line import DecisionLine, observed_by
from tandem.policy.status.steps import Action, Step, step_of, swap_step
from tandem.policy.timeouts import Timeouts
from tandem_core.model.kubernetes_names import intent_name
from tandem_core.model.pipeline import Pipeline

TURN = 1.0
"""Seconds between two reconciles of a running pipeline, which read the members' reports."""
IDLE = 30.0
"""Seconds between two reconciles of a pipeline that is completed or was refused."""
RESYNC = 10.0
"""Seconds after which objects are listed again although no watch event came."""
OBJECTS_EVERY = 30.0
"""Seconds after which all objects are compared although the manifest is the same."""
OBJECTS_AGAIN = 3.0
"""The same after an object could not be applied."""
FRESH = 5.0
"""Seconds for which the lead's report is valid. Not configurable: decisions rest on it."""

CLUSTER_LIMITS = Timeouts(unheard=5.0, hung=30.0)
"""On a busy node an answer may be late; the kubelet restarts a container that hangs a minute."""


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """The settings that the operator was started with."""

    images: Images
    namespace: str
    """The operator's own namespace."""
    limits: Timeouts = field(default=CLUSTER_LIMITS)


@dataclass(frozen=True, slots=True)
class ReconcilerPorts:
    """The ports that a reconciler uses."""

    kube: Kube
    members: Members
    nodes: Callable[[float], tuple[Node, ...]]
    """The nodes at a given time; none if the operator may not list them."""
    meter: Meter


class Reconciler:
    """Reconciles one pipeline. Turns run one after the other, in any thread."""

    def __init__(self, key: Key, ports: ReconcilerPorts, settings: OperatorSettings) -> None:
        self._key = key
        self._ports = ports
        self._kube = ports.kube
        self._settings = settings
        self._listing: PipelineObjects | None = None
        self._state: PipelineState | None = None
        self._log = DecisionLog(str(key))

    def turn(self, moment: Instant, news: bool) -> float | None:
        """Reconcile once; return in how many seconds to do so again, None if the pipeline is gone.

        `news` tells whether the resource or its pods have changed.

        Raises:
            Conflict: the intent was written by another operator; this turn is void.
            KubeError: see its subclasses; the next turn continues where this one ended.
        """
        self._log.begin()
        try:
            listing = self._list(moment, news)
            if listing is None:
                self.forget()
                return None
            if self._state is None or self._state.uid != listing.uid:
                self._state = self._begin(listing)
            due = self._turn(self._state, listing, moment)
        except KubeError:
            self._listing = None
            raise
        self._log.end()
        return due

    def failed(self) -> DecisionLine:
        """The steps that a failed turn had done until then; the caller logs why it failed."""
        return self._log.failed()

    def _turn(self, state: PipelineState, listing: PipelineObjects, moment: Instant) -> float:
        self._log.observed(lambda _: f"manifest generation {listing.generation}")
        scene = self._scene(listing, moment)
        if isinstance(scene, Complaint):
            waits = scene.reason == TAKEN
            refused = listing.recorded is None and not waits
            self._hold(Action.REFUSE if refused else Action.WAIT, "the manifest", scene)
            state.publisher.complain(listing.resource, scene, refused, moment)
            return IDLE if state.publisher.settled and not waits else TURN
        if state.is_over(moment.now):
            return self._rest(state, scene)
        if scene.recorded.ending:
            return self._begin_anew(state, scene)
        sight = self._look(state, scene)
        if state.memory is None and not sight.complete:
            return TURN / 4
        if scene.is_another(self._settings.namespace):
            if can_reset(state.publisher.written.phase, sight.snapshot):
                record_ending(self._kube, scene.recorded)
                about = (intent_name(self._key.name),)
                self._log.note(Step(Action.LABEL, "the intent for the reset", RESET_REASON, about))
                self._listing = None
                return 0.0
            scene = replace(scene, pipeline=None, refused=CHANGED_TOO_LATE)
        if state.memory is None:
            primaries, shown = dict(scene.recorded.intent.primaries), state.publisher.status
            state.memory = remembered(primaries, shown, sight.snapshot.members)
        snapshot, before = sight.snapshot, state.memory
        self._log.observed(lambda steps: observed_by(snapshot, before, steps))
        outcome = decide(sight.snapshot, state.memory, self._settings.limits, recover_pods)
        scene = self._record(state, scene, outcome)
        self._act(state, scene, sight, outcome)
        self._hold(Action.REFUSE, "the manifest", scene.refused)
        unpublished = self._publish(state, scene, sight, outcome)
        refused = can_reset(state.publisher.status.phase, sight.snapshot)
        self._apply(state, scene, refused=refused)
        if unpublished is not None:
            raise unpublished
        return TURN

    def _rest(self, state: PipelineState, scene: ReconcileContext) -> float:
        """Delete the workloads of a completed pipeline; its other objects stay."""
        self._ports.members.look((), "")
        self._apply(state, scene, over=True)
        state.publisher.report_blocked(scene.listing.resource, state.hindered, scene.moment)
        return IDLE if state.hindered is None else TURN

    def _begin_anew(self, state: PipelineState, scene: ReconcileContext) -> float:
        left = clear(self._kube, self._key, scene.listing, scene.recorded, self._log.note)
        self._hold(Action.WAIT, "the reset", left)
        state.publisher.report_blocked(scene.listing.resource, left, scene.moment)
        self._listing = None
        if left is None:
            self._state = None
        return TURN

    def forget(self) -> None:
        """Drop all state of a pipeline that is gone, or that this operator no longer manages."""
        if self._state is not None:
            self._log.note(Step(Action.FORGET, "the pipeline", "its resource is deleted"))
            self._log.end()
        self._ports.members.look((), "")
        self._ports.meter.gone(self._key)
        self._listing = self._state = None

    def _begin(self, listing: PipelineObjects) -> PipelineState:
        publisher = Publisher(
            self._kube, self._ports.meter, self._key, listing.resource, self._settings.limits
        )
        return PipelineState(listing.uid, publisher)

    # --- observe ------------------------------------------------------------------------------

    def _list(self, moment: Instant, news: bool) -> PipelineObjects | None:
        known = self._listing
        if known is None or news or moment.now - known.at >= RESYNC:
            nodes = self._ports.nodes(moment.now)
            known = self._listing = list_pipeline(self._kube, self._key, nodes, moment.now)
        return known

    def _scene(self, listing: PipelineObjects, moment: Instant) -> ReconcileContext | Complaint:
        judged, recorded = judge(listing.resource), listing.recorded
        if recorded is None:
            if isinstance(judged, Complaint):
                return judged
            recorded = self._establish(listing, judged)
        if isinstance(recorded, Complaint):
            return recorded
        if isinstance(judged, Complaint):
            return ReconcileContext(moment, listing, recorded, None, judged)
        return ReconcileContext(moment, listing, recorded, judged, None)

    def _establish(self, listing: PipelineObjects, pipeline: Pipeline) -> Recorded | Complaint:
        """Create the records of a new pipeline."""
        try:
            recorded = create_records(
                self._kube,
                pipeline,
                listing.uid,
                images=self._settings.images,
                token=secrets.token_urlsafe(32),
                where=self._settings.namespace,
                note=self._log.note,
            )
        except NameConflict as problem:
            return Complaint(TAKEN, str(problem))
        except Refused as problem:
            return Complaint("ApplyFailed", str(problem))
        self._listing = replace(listing, recorded=recorded)
        return recorded

    def _look(self, state: PipelineState, scene: ReconcileContext) -> ClusterView:
        listing = scene.listing
        if state.token is None:
            state.token = read_token(self._kube, self._key)
        pods = listing.pods if state.token is not None else ()
        order = scene.order(self._settings.namespace)
        if scene.is_another(self._settings.namespace):
            order = None
        return observe_pods(
            listing,
            scene.recorded.intent,
            self._ports.members.look(pods, state.token or ""),
            scene.moment,
            splits=order.pipeline.spec.splits.count if order is not None else 0,
            mark=replica_mark(order) if order is not None else None,
            fresh=FRESH,
        )

    # --- record -------------------------------------------------------------------------------

    def _record(
        self, state: PipelineState, scene: ReconcileContext, outcome: Outcome
    ) -> ReconcileContext:
        """Write the roles into the intent, and queue the events.

        Events are written after all actions, and before the status. If the operator dies in
        between, the next one finds the older status and emits them.
        """
        pairs = outcome.memory.pairs.items()
        primaries = {name: pair.primary for name, pair in pairs if pair.primary is not None}
        before = scene.recorded
        suspended = scene.pipeline.spec.suspend if scene.pipeline else before.intent.suspended
        intent = revise_intent(before.intent, primaries, suspended)
        if intent is not before.intent:
            scene = replace(scene, recorded=swap_intent(self._kube, before, intent))
            self._listing = replace(scene.listing, recorded=scene.recorded)
        for decision in outcome.decisions:
            if isinstance(decision, Promote | RecordEvent | Halt | Withhold | Wait | Complete):
                self._log.note(step_of(decision))
        if intent is not before.intent:
            changed = suspended != before.intent.suspended
            asked = [f"spec.suspend is {str(suspended).lower()}"] if changed else []
            versions = before.intent.version, intent.version
            self._log.note(swap_step(*versions, outcome.decisions, *asked))
        records = (each for each in outcome.decisions if isinstance(each, RecordEvent))
        state.publisher.note(map(event_of_record, records), scene.moment)
        state.memory = outcome.memory
        return scene

    # --- act ----------------------------------------------------------------------------------

    def _act(
        self, state: PipelineState, scene: ReconcileContext, sight: ClusterView, outcome: Outcome
    ) -> None:
        hands = Actuator(
            self._kube,
            self._ports.members,
            state.token or "",
            sight,
            self._settings.limits,
            scene.recorded.intent.target,
            self._log.note,
        )
        state.undone = None
        for done in hands.act(outcome.decisions):
            # The listing of the pods is outdated now.
            self._listing = None
            if isinstance(done, ActionFailure):
                state.undone = done.why
            else:
                state.publisher.note([done], scene.moment)
        for pod, role in outdated_labels(scene.listing.pods, sight.snapshot, outcome.memory):
            self._listing = None
            hindrance = hands.label(pod, role)
            if hindrance is not None:
                state.undone = hindrance.why

    # --- publish ------------------------------------------------------------------------------

    def _publish(
        self, state: PipelineState, scene: ReconcileContext, sight: ClusterView, outcome: Outcome
    ) -> KubeError | None:
        """Write the status; return a failure instead of raising it: objects are applied anyway."""
        troubles = Troubles(
            halted=_halted(outcome.decisions),
            refused=scene.refused,
            hindered=state.undone or state.hindered or _withheld(outcome.decisions),
            suspended=scene.recorded.intent.suspended,
        )
        resource, memory = scene.listing.resource, outcome.memory
        if memory.completed and state.completed_at is None:
            state.completed_at = scene.moment.now
        try:
            state.publisher.publish(resource, sight.snapshot, memory, troubles, scene.moment)
        except (Refused, Unreachable) as problem:
            return problem
        return None

    # --- apply --------------------------------------------------------------------------------

    def _apply(
        self,
        state: PipelineState,
        scene: ReconcileContext,
        *,
        over: bool = False,
        refused: bool = False,
    ) -> None:
        """Apply the objects that should exist; delete the workloads if `over`."""
        order = scene.order(self._settings.namespace)
        now, comparing = scene.moment.now, (scene.listing.generation, over, refused)
        if order is None or (now < state.compare_at and state.compared == comparing):
            self._hold(Action.WAIT, "objects", state.hindered)
            return
        try:
            missing = check_records(self._kube, order, state.token, self._log.note)
        except NameConflict as problem:
            missing = Complaint(TAKEN, str(problem))
        there = list_objects(self._kube, self._key)
        desired = wanted(replace(order, refused=refused), over)
        todo = changes(desired, there, scene.listing.uid)
        state.hindered = carry_out(self._kube, todo, order.uid, self._log.note) or missing
        self._hold(Action.WAIT, "objects", state.hindered)
        if todo.apply:
            # The listed pod templates may be outdated now.
            self._listing = None
        state.compared = comparing
        state.compare_at = now + (OBJECTS_EVERY if state.hindered is None else OBJECTS_AGAIN)

    # --- log ----------------------------------------------------------------------------------

    def _hold(self, action: Action, what: str, why: Complaint | None) -> None:
        """Note a step that cannot be done now, if there is a complaint."""
        if why is not None:
            self._log.note(Step(action, what, why.text))


def _halted(decisions: Iterable[Decision]) -> Complaint | None:
    return next((each.complaint for each in decisions if isinstance(each, Halt)), None)


def _withheld(decisions: Iterable[Decision]) -> Complaint | None:
    return next((each.complaint for each in decisions if isinstance(each, Withhold)), None)

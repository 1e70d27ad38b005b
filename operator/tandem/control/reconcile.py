"""The loop of one pipeline: observe, decide, record, act, publish, apply.

No state here needs to survive the operator: it is restored from the intent and the status. The
operator may die after any step; the next one continues from there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tandem.control.act import Acted, ActionFailure, Actuator, outdated_labels
from tandem.control.admission import judge
from tandem.control.apply import Target, compare
from tandem.control.context import PipelineState, ReconcileContext, Reconciled
from tandem.control.events import OperatorEventReason, event_of_record
from tandem.control.intent_store import Recorded, read_token, token_unknown
from tandem.control.members import Members
from tandem.control.nodes import Node
from tandem.control.observe import TAKEN, ClusterView, PipelineObjects, list_pipeline, observe_pods
from tandem.control.publish import Publisher
from tandem.control.record import Recorder
from tandem.control.reset import CHANGED_TOO_LATE, can_reset, clear
from tandem.control.resize.lost_intent import LOST_INTENT, find_lost_intent
from tandem.control.resize.next_step import next_step
from tandem.control.resize.workloads import births_of
from tandem.control.types import Instant, Key, Meter
from tandem.kube.port import Kube, KubeError, Refused, Unreachable
from tandem.manifests.desired_state import Images
from tandem.manifests.workloads import replica_mark
from tandem.output.json_logs import DecisionLog
from tandem.policy.controller_state import ControllerState, remembered
from tandem.policy.decide import Outcome, decide, without_roles
from tandem.policy.decisions import RecordEvent
from tandem.policy.recovery.pods import recover_pods
from tandem.policy.snapshot import Complaint, Snapshot
from tandem.policy.status.decision_line import DecisionLine, observed_by
from tandem.policy.status.steps import Action, Step
from tandem.policy.status.untold_changes import untold_changes
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.reports import LeadReport
from tandem_core.model.pipeline import Pipeline

TURN = 1.0
"""Seconds between two reconciles of a running pipeline, which read the members' reports."""
IDLE = 30.0
"""Seconds between two reconciles of a pipeline that is completed or was refused."""
ASKING = TURN / 4
"""Seconds between two reconciles until every member has been asked once."""
RESYNC = 10.0
"""Seconds after which objects are listed again although no watch event came."""
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
        self._recorder = Recorder(
            ports.kube, settings.images, settings.namespace, note=self._log.note
        )

    def turn(self, moment: Instant, news: bool) -> float | None:
        """Reconcile once; return in how many seconds to do so again, None if the pipeline is gone.

        `news` tells whether the resource or its pods have changed.

        Raises:
            Conflict: the intent was written by another operator; this turn is void.
            KubeError: see its subclasses; the next turn continues where this one ended.
        """
        self._log.begin()
        # Kept again at the end: after a turn that fails, all objects are listed again.
        known, self._listing = self._listing, None
        listing = self._list(None if news else known, moment)
        if listing is None:
            self.forget()
            return None
        if self._state is None or self._state.uid != listing.uid:
            self._state = self._new_state(listing)
        done = self._reconcile(self._state, listing, moment)
        self._listing = None if done.outdated else done.listing
        self._log.end()
        return done.again_after

    def failed(self) -> DecisionLine:
        """The steps that a failed turn had done until then; the caller logs why it failed."""
        return self._log.failed()

    def forget(self) -> None:
        """Drop all state of a pipeline that is gone, or that this operator no longer manages."""
        if self._state is not None:
            self._log.note(Step(Action.FORGET, "the pipeline", "its resource is deleted"))
            self._log.end()
        self._ports.members.look((), "")
        self._ports.meter.gone(self._key)
        self._listing = self._state = None

    def _new_state(self, listing: PipelineObjects) -> PipelineState:
        publisher = Publisher(
            self._kube, self._ports.meter, self._key, listing.resource, self._settings.limits
        )
        return PipelineState(listing.uid, publisher)

    # --- the kinds of turns -------------------------------------------------------------------

    def _reconcile(
        self, state: PipelineState, listing: PipelineObjects, moment: Instant
    ) -> Reconciled:
        """Take the turn that manifest, records, written status and members call for."""
        self._log.observed(lambda _: f"manifest generation {listing.generation}")
        manifest = judge(listing.resource)
        recorded = self._record_beginning(state, listing, manifest)
        if isinstance(recorded, Complaint):
            return self._complain(state, listing, recorded, moment)
        listing, where = replace(listing, recorded=recorded), self._settings.namespace
        context = ReconcileContext(moment, listing, recorded, manifest, where)
        if state.is_over(moment.now):
            return self._clean_up(state, context)
        if recorded.ending:
            return self._reset(state, context)
        state.token = state.token or read_token(self._kube, self._key)
        if state.token is None:
            return self._run_unseen(state, context)
        return self._run_seen(state, context, self._observe_members(context, state.token))

    def _run_seen(
        self, state: PipelineState, context: ReconcileContext, view: ClusterView
    ) -> Reconciled:
        """Run the pipeline once every member has been asked, or begin to start it over."""
        if state.memory is None and not view.complete:
            return Reconciled(ASKING, context.listing)
        if context.is_another() and can_reset(state.publisher.written.phase, view.snapshot):
            return self._begin_reset(context)
        return self._run(state, context, view)

    def _complain(
        self, state: PipelineState, listing: PipelineObjects, why: Complaint, moment: Instant
    ) -> Reconciled:
        """Publish why the pipeline cannot be run."""
        waits = why.reason in {TAKEN, *LOST_INTENT}
        refused = listing.recorded is None and not waits
        self._hold(Action.REFUSE if refused else Action.WAIT, "the manifest", why)
        state.publisher.complain(listing.resource, why, moment, refused=refused)
        return Reconciled(IDLE if state.publisher.settled and not waits else TURN, listing)

    def _clean_up(self, state: PipelineState, context: ReconcileContext) -> Reconciled:
        """Delete the workloads of a completed pipeline; its other objects stay."""
        self._ports.members.look((), "")
        applied = self._apply(state, context, over=True)
        hindered = state.comparison.hindered
        state.publisher.report_blocked(context.listing.resource, hindered, context.moment)
        return Reconciled(IDLE if hindered is None else TURN, context.listing, outdated=applied)

    def _begin_reset(self, context: ReconcileContext) -> Reconciled:
        """Record that the objects of the old manifest are to be deleted; the next turn does so."""
        self._recorder.end(context.recorded)
        return Reconciled(0.0, context.listing, outdated=True)

    def _reset(self, state: PipelineState, context: ReconcileContext) -> Reconciled:
        """Delete the objects of the old manifest; once all are gone, the pipeline is a new one."""
        listing = context.listing
        left = clear(self._kube, self._key, listing, context.recorded, self._log.note)
        self._hold(Action.WAIT, "the reset", left)
        state.publisher.report_blocked(listing.resource, left, context.moment)
        if left is None:
            self._state = None
        return Reconciled(TURN, listing, outdated=True)

    def _run(
        self, state: PipelineState, context: ReconcileContext, view: ClusterView
    ) -> Reconciled:
        """Decide what the members need, and do it."""
        if context.is_another():
            context = replace(context, manifest=CHANGED_TOO_LATE)
        outcome = self._decide(state, context, view)
        context, outcome = self._record(state, context, view.snapshot, outcome)
        acted = self._act(state, context, view, outcome)
        self._hold(Action.REFUSE, "the manifest", context.refused)
        unpublished = self._publish(state, context, view, outcome, acted.failure)
        refused = can_reset(state.publisher.status.phase, view.snapshot)
        applied = self._apply(state, context, view.snapshot.lead, refused=refused)
        if unpublished is not None:
            raise unpublished
        return Reconciled(TURN, context.listing, outdated=acted.changed or applied)

    def _run_unseen(self, state: PipelineState, context: ReconcileContext) -> Reconciled:
        """Keep a pipeline's objects and its suspension while no pod can be asked.

        Nothing is decided about members, and the status stays as it is but for `Ready`.
        """
        self._ports.members.look((), "")
        if context.is_another():
            context = replace(context, manifest=CHANGED_TOO_LATE)
        intent, resource = context.recorded.intent, context.listing.resource
        as_known = Outcome((), remembered(dict(intent.primaries), state.publisher.status))
        revised = self._recorder.revise(
            context.recorded, as_known, context.suspended(), lambda _: None
        )
        context = context.with_recorded(revised)
        applied = self._apply(state, context)
        state.publisher.complain(
            resource,
            token_unknown(self._key.name),
            context.moment,
            notice=OperatorEventReason.BLOCKED,
        )
        return Reconciled(TURN, context.listing, outdated=applied)

    # --- observe ------------------------------------------------------------------------------

    def _list(self, known: PipelineObjects | None, moment: Instant) -> PipelineObjects | None:
        """Return the known listing while it is recent, or a new one; None without a resource."""
        if known is not None and moment.now - known.at < RESYNC:
            return known
        return list_pipeline(self._kube, self._key, self._ports.nodes(moment.now), moment.now)

    def _observe_members(self, context: ReconcileContext, token: str) -> ClusterView:
        """Combine the listed pods with the reports of the processes in them."""
        listing = context.listing
        order = None if context.is_another() else context.order()
        return observe_pods(
            listing,
            context.recorded.intent,
            self._ports.members.look(listing.pods, token),
            context.moment,
            workloads=context.workloads(),
            mark=replica_mark(order) if order is not None else None,
            fresh=FRESH,
        )

    # --- decide -------------------------------------------------------------------------------

    def _decide(
        self, state: PipelineState, context: ReconcileContext, view: ClusterView
    ) -> Outcome:
        """Decide by the memory of the turn before; the first turn restores it from the status."""
        snapshot = view.snapshot
        if state.memory is None:
            primaries = dict(context.recorded.intent.primaries)
            state.memory = remembered(primaries, state.publisher.status, snapshot.members)
            untold = untold_changes(context.recorded.intent, state.publisher.status)
            state.publisher.note(map(event_of_record, untold), context.moment)
        before = state.memory
        self._log.observed(lambda steps: observed_by(snapshot, before, steps))
        return decide(snapshot, before, self._settings.limits, recover_pods)

    # --- record -------------------------------------------------------------------------------

    def _record_beginning(
        self, state: PipelineState, listing: PipelineObjects, manifest: Pipeline | Complaint
    ) -> Recorded | Complaint:
        """Create the records of a new pipeline that can be run; return those of any other one."""
        known = find_lost_intent(listing, state.publisher.status, manifest) or listing.recorded
        if known is not None:
            return known
        if isinstance(manifest, Complaint):
            return manifest
        return self._recorder.begin(manifest, listing.uid)

    def _record(
        self,
        state: PipelineState,
        context: ReconcileContext,
        snapshot: Snapshot,
        outcome: Outcome,
    ) -> tuple[ReconcileContext, Outcome]:
        """Write roles and the next step of a change into the intent, and queue the events.

        Events are written after all actions, and before the status. If the operator dies in
        between, the next one finds the older status and emits them. Returns what is left to do,
        which is less if the server does not take the roles.
        """
        known, after = state.memory or ControllerState(), outcome.memory
        revised = self._recorder.revise(
            context.recorded,
            outcome,
            context.suspended(),
            lambda intent: next_step(context, intent, snapshot, after),
        )
        if revised.stale:
            outcome = without_roles(outcome, known)
        records = (each for each in outcome.decisions if isinstance(each, RecordEvent))
        state.publisher.note(map(event_of_record, (*records, *revised.records)), context.moment)
        pairs = known.pairs if revised.stale else after.pairs
        state.memory = replace(outcome.memory, pairs=pairs)
        return context.with_recorded(revised), outcome

    # --- act ----------------------------------------------------------------------------------

    def _act(
        self, state: PipelineState, context: ReconcileContext, view: ClusterView, outcome: Outcome
    ) -> Acted:
        """Carry out the decisions about pods, then correct the labels of replicas."""
        actuator = Actuator(
            self._kube,
            self._ports.members,
            state.token or "",
            view,
            self._settings.limits,
            births_of(context.recorded.intent),
            self._log.note,
        )
        failure: Complaint | None = None
        changed = False
        for done in actuator.act(outcome.decisions):
            changed = True
            if isinstance(done, ActionFailure):
                failure = done.why
            else:
                state.publisher.note([done], context.moment)
        for pod, role in outdated_labels(context.listing.pods, view.snapshot, outcome.memory):
            changed = True
            unlabelled = actuator.label(pod, role)
            failure = unlabelled.why if unlabelled is not None else failure
        return Acted(failure, changed)

    # --- publish ------------------------------------------------------------------------------

    def _publish(
        self,
        state: PipelineState,
        context: ReconcileContext,
        view: ClusterView,
        outcome: Outcome,
        failure: Complaint | None,
    ) -> KubeError | None:
        """Write the status; return a failure instead of raising it: objects are applied anyway."""
        troubles = context.troubles(outcome.decisions, failure, state.comparison.hindered)
        resource, memory = context.listing.resource, outcome.memory
        if memory.completed and state.completed_at is None:
            state.completed_at = context.moment.now
        try:
            state.publisher.publish(resource, view.snapshot, memory, troubles, context.moment)
        except (Refused, Unreachable) as problem:
            return problem
        return None

    # --- apply --------------------------------------------------------------------------------

    def _apply(
        self,
        state: PipelineState,
        context: ReconcileContext,
        lead: LeadReport | None = None,
        *,
        over: bool = False,
        refused: bool = False,
    ) -> bool:
        """Compare the objects with those that should exist, if due; return whether any changed.

        Workloads that a fresh report of the lead no longer needs are deleted.
        """
        order, now, changed = context.order(lead), context.moment.now, False
        if order is not None:
            target = Target(context.listing.generation, order.workloads, over, refused)
            if state.comparison.is_due(target, now):
                note = self._log.note
                state.comparison = compare(self._kube, order, target, state.token, now, note)
                changed = state.comparison.changed
        self._hold(Action.WAIT, "objects", state.comparison.hindered)
        return changed

    # --- log ----------------------------------------------------------------------------------

    def _hold(self, action: Action, what: str, why: Complaint | None) -> None:
        """Note a step that cannot be done now, if there is a complaint."""
        if why is not None:
            self._log.note(Step(action, what, why.text))

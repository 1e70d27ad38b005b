"""Publishes the events and the status of a pipeline."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tandem.control.events import (
    EventQueue,
    OperatorEventReason,
    PipelineEvent,
    event_of_record,
)
from tandem.control.types import Instant, Key, Meter, stamp
from tandem.kube.kinds import Object
from tandem.kube.port import Kube
from tandem.policy.controller_state import ControllerState
from tandem.policy.snapshot import Complaint, Snapshot
from tandem.policy.status.conditions import Background, conditions_of
from tandem.policy.status.readiness import readiness_told, tell_readiness
from tandem.policy.status.status import status_of
from tandem.policy.timeouts import Timeouts
from tandem_core.model.kubernetes_names import primary_selector
from tandem_core.model.pipeline import status_document, status_in
from tandem_core.model.states import ChangeStage, ConditionType, Phase
from tandem_core.model.status import Status

EVERY = 2.0
"""Least seconds between two writes of the status, except for another stage of a change: some stages
last a second, and whoever watches is to see each."""
EVENTS_FIRST = 60.0
"""Seconds that the status waits for events to be written. An operator that finds an older status
emits the events since then, so one that is killed in between loses none. The wait is bounded: a
server that takes no events must not keep the status from users for long."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """Complaints about a pipeline beside the reports of its members."""

    halted: Complaint | None = None
    """Why a member cannot continue."""
    refused: Complaint | None = None
    """Why the manifest as it is now cannot be run."""
    hindered: Complaint | None = None
    """Why a step of the reconcile failed or is held back."""
    suspended: bool = False


class Publisher:
    """Writes events and the status of one resource, each change once.

    A failure to write events is only logged. A failure to write the status is raised.
    """

    def __init__(
        self, kube: Kube, meter: Meter, key: Key, resource: Object, limits: Timeouts
    ) -> None:
        self._kube = kube
        self._meter = meter
        self._key = key
        self._limits = limits
        self.status = status_in(resource)
        """The status as it should stand in the resource."""
        self.written = self.status
        """The status as last read or written there."""
        self._written_at = -math.inf
        self._readiness = readiness_told(self.status)
        """What events have told of `Ready`. The next operator goes by the status as written."""
        self._told: dict[OperatorEventReason, Complaint] = {}
        self._telling = EventQueue(kube, meter, key)

    # --- events -------------------------------------------------------------------------------

    def note(self, told: Iterable[PipelineEvent], moment: Instant) -> None:
        """Queue events; they are written before the status is."""
        self._telling.note(told, moment)

    def _note_lasting(
        self, notice: OperatorEventReason, why: Complaint | None, moment: Instant
    ) -> None:
        """Queue an event when a lasting complaint begins or changes."""
        if why is None:
            self._told.pop(notice, None)
        elif self._told.get(notice) != why:
            self.note([PipelineEvent(notice, why.text)], moment)
            self._told[notice] = why

    def report_blocked(self, resource: Object, why: Complaint | None, moment: Instant) -> None:
        """Write one event about a step that failed and is retried; None if there is none."""
        self._note_lasting(OperatorEventReason.BLOCKED, why, moment)
        self._telling.tell(resource, moment.now)

    # --- status -------------------------------------------------------------------------------

    def publish(
        self,
        resource: Object,
        snapshot: Snapshot,
        memory: ControllerState,
        troubles: Troubles,
        moment: Instant,
    ) -> None:
        """Bring events and status up to date with the snapshot.

        A manifest counts as observed once it is carried out; of one that is refused `Ready` tells.
        """
        self._note_lasting(OperatorEventReason.HALTED, troubles.halted, moment)
        self._note_lasting(OperatorEventReason.REFUSED, troubles.refused, moment)
        self._note_lasting(OperatorEventReason.BLOCKED, troubles.hindered, moment)
        background = replace(
            self._background(moment),
            halted=troubles.halted,
            trouble=troubles.refused or troubles.hindered,
            suspended=troubles.suspended,
        )
        status = status_of(snapshot, memory, background, self.status)
        if troubles.refused is None:
            generation = int(resource["metadata"].get("generation", 0))
            status = replace(status, observed_generation=generation)
        self._write(resource, status, moment)

    def complain(
        self,
        resource: Object,
        why: Complaint,
        moment: Instant,
        *,
        refused: bool = False,
        notice: OperatorEventReason = OperatorEventReason.REFUSED,
    ) -> None:
        """Publish why a pipeline cannot be reconciled; its members are not observed.

        `refused` if its manifest is the reason.
        """
        self._note_lasting(notice, why, moment)
        background = replace(self._background(moment), halted=why)
        before = self.status
        conditions = conditions_of(
            Snapshot(0.0, ()), ControllerState(), {}, background, before.conditions
        )
        ready = next(each for each in conditions if each.type is ConditionType.READY)
        others = tuple(each for each in before.conditions if each.type is not ready.type)
        status = replace(before, conditions=(ready, *others))
        if refused:
            status = replace(status, phase=Phase.REFUSED)
        self._write(resource, status, moment)

    @property
    def settled(self) -> bool:
        """Whether the current status has been written."""
        return self.status == self.written

    def _background(self, moment: Instant) -> Background:
        selector = primary_selector(self._key.name)
        return Background(stamp(moment.wall), self._limits, one_machine=False, selector=selector)

    def _write(self, resource: Object, status: Status, moment: Instant) -> None:
        if status.phase is Phase.COMPLETED and self.status.phase is not Phase.COMPLETED:
            done = PipelineEvent(
                OperatorEventReason.COMPLETED, "all results are delivered; the pods are deleted"
            )
            self.note([done], moment)
        # Members are shown by `tandem status` alone.
        self.status = replace(status, members=())
        self._meter.status(self._key, self.status)
        self._note_readiness(moment)
        self._telling.tell(resource, moment.now)
        untold = self._telling.waits(moment.now)
        if self.settled or (untold is not None and untold < EVENTS_FIRST):
            return
        if not self._is_due(moment):
            return
        document = status_document(self.status)
        document.pop("members", None)
        self._kube.write_status(resource, document)
        self.written, self._written_at = self.status, moment.now

    def _is_due(self, moment: Instant) -> bool:
        is_new_stage = _stage_of(self.status) is not _stage_of(self.written)
        return is_new_stage or moment.now - self._written_at >= EVERY

    def _note_readiness(self, moment: Instant) -> None:
        """Queue an event if `Ready` has changed, as often as the status may be written."""
        if self._is_due(moment):
            self._readiness, told = tell_readiness(self._readiness, self.status)
            self.note(map(event_of_record, told), moment)


def _stage_of(status: Status) -> ChangeStage | None:
    return status.change.stage if status.change is not None else None

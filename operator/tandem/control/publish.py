"""What people see of a pipeline: its events and its status."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tandem.control.events import EventQueue, OperatorEventReason, PipelineEvent
from tandem.control.types import Instant, Key, Meter, stamp
from tandem.kube.kinds import Object
from tandem.kube.port import Kube
from tandem.policy.controller_state import ControllerState
from tandem.policy.snapshot import Complaint, Snapshot
from tandem.policy.status.conditions import Background, conditions_of
from tandem.policy.status.status import status_of
from tandem.policy.timeouts import Timeouts
from tandem_core.model.pipeline import status_document, status_in
from tandem_core.model.states import ConditionType, Phase
from tandem_core.model.status import Status

EVERY = 2.0
"""Seconds between two versions of the status, at least."""
EVENTS_FIRST = 60.0
"""Seconds that the status waits for events to be written. An operator that finds an older status
tells what has happened since, so one that is killed in between loses no event; but nobody shall go
without a status for long because the server takes no events."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """What is to be said about a pipeline beside what its pods say."""

    halted: Complaint | None = None
    """Why a member cannot go on."""
    refused: Complaint | None = None
    """Why the manifest as it is now cannot be run."""
    hindered: Complaint | None = None
    """Why something could not be applied."""
    suspended: bool = False


class Publisher:
    """Writes events and the status of one resource; everything new, and nothing twice.

    Trouble with events is no reason to fail. Trouble with the status is.
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
        """The status as it stands there."""
        self._written_at = -math.inf
        self._told: dict[OperatorEventReason, Complaint] = {}
        self._telling = EventQueue(kube, meter, key)

    # --- events -------------------------------------------------------------------------------

    def note(self, told: Iterable[PipelineEvent], moment: Instant) -> None:
        """Events to be written before the status is."""
        self._telling.note(told, moment)

    def _note_lasting(
        self, notice: OperatorEventReason, why: Complaint | None, moment: Instant
    ) -> None:
        """Note something that lasts when it begins or changes."""
        if why is None:
            self._told.pop(notice, None)
        elif self._told.get(notice) != why:
            self.note([PipelineEvent(notice, why.text)], moment)
            self._told[notice] = why

    def report_blocked(self, resource: Object, why: Complaint | None, moment: Instant) -> None:
        """Tell, once, of something that could not be done and is tried again; None if nothing."""
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
        """Bring events and status up to date with what was seen."""
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
        self._write(resource, status, moment)

    def complain(self, resource: Object, why: Complaint, refused: bool, moment: Instant) -> None:
        """Say why nothing can be done, about a pipeline whose members are not looked at.

        `refused` if that is so because of its manifest.
        """
        self._note_lasting(OperatorEventReason.REFUSED, why, moment)
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
        """Whether all that there is to say has been written."""
        return self.status == self.written

    def _background(self, moment: Instant) -> Background:
        return Background(stamp(moment.wall), self._limits, one_machine=False)

    def _write(self, resource: Object, status: Status, moment: Instant) -> None:
        if status.phase is Phase.COMPLETED and self.status.phase is not Phase.COMPLETED:
            done = PipelineEvent(
                OperatorEventReason.COMPLETED, "all results are delivered; the pods are deleted"
            )
            self.note([done], moment)
        # A manifest that is refused was seen too: `Ready` says what came of it. Members belong to
        # `tandem status` alone.
        generation = int(resource["metadata"].get("generation", 0))
        self.status = replace(status, observed_generation=generation, members=())
        self._meter.status(self._key, self.status)
        self._telling.tell(resource, moment.now)
        untold = self._telling.waits(moment.now)
        if self.settled or (untold is not None and untold < EVENTS_FIRST):
            return
        if moment.now - self._written_at < EVERY:
            return
        document = status_document(self.status)
        document.pop("members", None)
        self._kube.write_status(resource, document)
        self.written, self._written_at = self.status, moment.now

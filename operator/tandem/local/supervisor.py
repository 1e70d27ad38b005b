"""The supervisor of a pipeline on one machine: a loop of observe, decide, record, act.

Rows do not wait for it. It starts processes, replaces those that fail, writes roles into the intent
and publishes the status.
"""

import json
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from tandem.local.changes import ChangeDesk
from tandem.local.display.snapshot import DisplaySnapshot, Event, Rate
from tandem.local.processes.children import may_give_way
from tandem.local.processes.process_manager import Assign, Command, ProcessManager
from tandem.local.processes.roster import roster_of
from tandem.local.shutdown import End, EndReason, Stop
from tandem.local.store import files
from tandem.local.store.directory import Directory, DirectoryRefused, read_status
from tandem.local.store.intent_file import (
    read_intent,
    remove_other_functions,
    write_functions,
    write_intent,
)
from tandem.output.json_logs import DecisionLog
from tandem.policy.change.codec import ShareChanged
from tandem.policy.controller_state import remembered
from tandem.policy.decide import Outcome, decide, low_priority_members
from tandem.policy.decisions import (
    AssignSpare,
    Complete,
    Decision,
    Dismiss,
    Halt,
    Kill,
    Promote,
    RecordEvent,
    Remove,
    Replace,
    Restart,
    Start,
)
from tandem.policy.intent import first_functions, first_intent, with_primaries
from tandem.policy.snapshot import Complaint, Snapshot
from tandem.policy.status.conditions import Background
from tandem.policy.status.decision_line import observed_by
from tandem.policy.status.status import at_rest, status_of, with_rows_out
from tandem.policy.status.steps import held, step_of, swap_step
from tandem.policy.status.untold_changes import untold_changes
from tandem.policy.timeouts import Timeouts
from tandem_core.model.pipeline import Pipeline, status_document
from tandem_core.model.status import Status
from tandem_core.routing.errors import RoutingError

TURN = 0.2
"""Seconds between two turns of the loop."""
STATUS_EVERY = 0.4
"""Seconds between two versions of the status on disk."""
FRESH = 2.0
"""Seconds after which a lead's report no longer counts."""
STOPPED = 3.0
"""Seconds between turns from which this process must have been paused: its reports are stale."""
GRACE = 20.0
"""Seconds that members have to stop gracefully."""
LAST_WORDS = 3.0
"""Seconds that members of a completed pipeline have to exit by themselves. Some may never learn of
the completion: the members that could report it have exited."""
WARN_EVERY = 60.0
"""Seconds before the same warning is repeated."""
EVENTS_SHOWN = 8

_log = logging.getLogger(__name__)


class Display(Protocol):
    """The display of a run."""

    def show(self, picture: DisplaySnapshot) -> None:
        """Show the current snapshot."""

    def tell(self, event: Event) -> None:
        """Show an event once."""

    def warn(self, text: str) -> None:
        """Show a warning."""


@dataclass(frozen=True, slots=True)
class SupervisorPorts:
    """Dependencies of the supervisor: the programs, the display, the limits."""

    command: Command
    assign: Assign
    display: Display
    rows_delivered: Callable[[], int]
    """Counts rows that have reached the sinks; called when all members have ended."""
    limits: Timeouts = field(default_factory=Timeouts)


class Supervisor:
    """Runs one pipeline until it ends. To be used once, from the main thread."""

    def __init__(
        self, directory: Directory, pipeline: Pipeline, ports: SupervisorPorts, stop: Stop
    ) -> None:
        self._directory = directory
        self._name = pipeline.metadata.name
        self._ports = ports
        self._stop = stop
        self._spares = pipeline.spec.pairs.spares
        self._crew = ProcessManager(directory, ports.command, ports.assign)
        known = read_intent(directory.intent)
        self._intent = known or first_intent(pipeline)
        self._functions = first_functions(pipeline) if known is None else ()
        self._changes = ChangeDesk(directory)
        self._status = read_status(directory) or Status()
        self._untold = tuple(untold_changes(self._intent, self._status))
        # All processes are restarted, so the stage of an earlier recovery does not matter.
        shown = replace(self._status, pairs=())
        self._memory = remembered(dict(self._intent.primaries), shown)
        self._events: deque[Event] = deque(maxlen=EVENTS_SHOWN)
        self._rates = Rate(), Rate()
        self._halted: Complaint | None = None
        self._began = self._turned = time.monotonic()
        self._blind_until = 0.0
        self._warned: dict[str, float] = {}
        self._published = 0.0
        self._gives_way = may_give_way()
        self._decided = DecisionLog(self._name)

    def run(self, seconds: float | None) -> End:
        """Start all members and supervise them until the pipeline ends or for this many seconds."""
        leftovers = self._crew.muster()
        if leftovers:
            self._warn(f"killed {leftovers} processes left by an earlier run")
        if not self._gives_way:
            _log.warning(
                "catch-up runs at full CPU priority: a lowered one could not be raised again"
            )
        write_functions(self._directory.intent.parent, self._functions)
        write_intent(self._directory.intent, self._intent)
        with self._going_on_without_room():
            for record in self._untold:
                self._write_event(record)
        self._began = self._turned = time.monotonic()
        forced = True
        try:
            why = self._turns(None if seconds is None else self._began + seconds)
            forced = not self._end_members(why)
        finally:
            self._crew.kill_all()
            self._rest()
        return End(why, self._status, self._halted, forced)

    def _turns(self, deadline: float | None) -> EndReason:
        while True:
            ending = None
            with self._going_on_without_room():
                ending = self._turn()
            if ending is not None:
                return ending
            if self._stop.asked:
                return EndReason.ASKED
            if deadline is not None and time.monotonic() >= deadline:
                return EndReason.TIME_OVER
            self._stop.wait(TURN)

    def _turn(self) -> EndReason | None:
        now = time.monotonic()
        if now - self._turned > STOPPED:
            _log.warning("the supervisor was stopped for %.0f s", now - self._turned)
            self._blind_until = now + FRESH
        self._turned = now
        snapshot = self._look(now)
        if now < self._blind_until:
            return None
        before = self._memory
        self._decided.begin()
        self._decided.observed(lambda steps: observed_by(snapshot, before, steps))
        outcome = decide(snapshot, before, self._ports.limits)
        try:
            # Roles and events may wait for disk space; members that failed may not.
            with self._going_on_without_room():
                self._record(outcome)
            ending = self._act(outcome.decisions)
            with self._going_on_without_room():
                self._change(snapshot)
        finally:
            self._decided.end()
        if self._gives_way:
            self._crew.give_way(low_priority_members(snapshot, self._memory, self._ports.limits))
        self._publish(snapshot, now)
        return ending

    @contextmanager
    def _going_on_without_room(self) -> Iterator[None]:
        """Warn of a failed write or start and continue; the next turn retries it."""
        try:
            yield
        except OSError as error:
            where = error.filename or self._directory.path
            self._warn(
                f"cannot write files or start processes in {where}: {error.strerror}; retrying"
            )

    def _warn(self, text: str) -> None:
        now = time.monotonic()
        if now - self._warned.get(text, -math.inf) > WARN_EVERY:
            self._warned[text] = now
            _log.warning("%s", text)
            # The write that failed may be to the terminal itself.
            with suppress(OSError):
                self._ports.display.warn(text)

    # --- observe ------------------------------------------------------------------------------

    def _look(self, now: float) -> Snapshot:
        fresh = self._crew.fresh(now, FRESH)
        snapshot = Snapshot.taken(now, self._crew.members(), fresh, self._intent)
        roster = roster_of(self._intent, snapshot.lead, self._crew.places(), self._spares)
        self._crew.arrange(roster.places())
        return replace(snapshot, members=self._crew.members())

    # --- record -------------------------------------------------------------------------------

    def _record(self, outcome: Outcome) -> None:
        self._memory = outcome.memory
        for decision in outcome.decisions:
            if isinstance(decision, Promote):
                self._decided.note(step_of(decision))
        self._crew.note_lead(self._memory.lead)
        # Not only after a promotion: the write may have failed then.
        pairs = self._memory.pairs.items()
        primaries = {name: pair.primary for name, pair in pairs if pair.primary is not None}
        if primaries != dict(self._intent.primaries):
            intent = with_primaries(self._intent, primaries)
            write_intent(self._directory.intent, intent)
            versions = self._intent.version, intent.version
            self._decided.note(swap_step(*versions, outcome.decisions))
            self._intent = intent
        for decision in outcome.decisions:
            if isinstance(decision, RecordEvent):
                self._write_event(decision)
                self._decided.note(step_of(decision))

    def _write_event(self, record: RecordEvent) -> None:
        event = Event(_wall_clock(), record.event, record.subject, record.detail)
        self._events.append(event)
        self._ports.display.tell(event)
        files.append(self._directory.events, json.dumps(event.as_json()))

    def _change(self, snapshot: Snapshot) -> None:
        """Make the next step of a change of sizes or keys; its documents first, then the intent."""
        step = None
        try:
            step = self._changes.next_step(self._intent, snapshot, self._memory, _milliseconds())
        except (DirectoryRefused, RoutingError, ShareChanged) as problem:
            self._warn(f"no change can be made: {problem}")
        if step is None:
            return
        write_functions(self._directory.intent.parent, step.functions)
        write_intent(self._directory.intent, step.intent)
        self._decided.note(swap_step(self._intent.version, step.intent.version, (), step.reason))
        # Before anything that may fail: another step under this version would be written otherwise.
        self._intent = step.intent
        for record in step.records:
            self._write_event(record)
            self._decided.note(step_of(record))
        remove_other_functions(self._directory.intent.parent, step.intent.functions_named())

    # --- act ----------------------------------------------------------------------------------

    def _act(self, decisions: Iterable[Decision]) -> EndReason | None:
        ending = None
        for decision in decisions:
            if isinstance(decision, Promote | RecordEvent):
                continue
            try:
                ending = self._carry_out(decision) or ending
            except OSError as error:
                self._decided.note(held(decision, error.strerror or str(error)))
                raise
            self._decided.note(step_of(decision))
        return ending

    def _carry_out(self, decision: Decision) -> EndReason | None:
        match decision:
            case Start(name, volume, _) | Restart(name, volume, _):
                self._crew.start(name, volume)
            case Replace(name, volume, _):
                self._crew.replace(name, volume)
            case Kill(name, _):
                self._crew.kill(name)
            case Dismiss(name, _):
                self._crew.dismiss(name)
            case Remove(name, volume, _):
                self._crew.remove(name, volume)
            case AssignSpare(spare, name, volume, _):
                self._crew.use_spare(spare, name, volume)
            case Halt():
                self._halted = decision.named
                return EndReason.HALTED
            case Complete():
                return EndReason.COMPLETED
        return None

    def _end_members(self, why: EndReason) -> bool:
        """Stop all members gracefully; false if a member has to be killed."""
        if why is EndReason.COMPLETED and self._all_end_within(LAST_WORDS):
            return True
        self._crew.ask_to_stop()
        return self._all_end_within(GRACE)

    def _all_end_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        already_asked = self._stop.asked
        while self._crew.running():
            hurry = self._stop.at_once or (self._stop.asked and not already_asked)
            if hurry or time.monotonic() > deadline:
                return False
            time.sleep(TURN / 4)
        return True

    # --- show ---------------------------------------------------------------------------------

    def _publish(self, snapshot: Snapshot, now: float) -> None:
        if now - self._published < STATUS_EVERY:
            return
        self._published = now
        self._crew.shorten_logs()
        status = status_of(snapshot, self._memory, self._background(), self._status)
        self._status = replace(status, observed_generation=self._changes.generation)
        self._write_status()
        counters = self._status.counters
        self._ports.display.show(
            DisplaySnapshot(
                name=self._name,
                status=self._status,
                snapshot=snapshot,
                lead=self._memory.lead,
                rows_in_per_second=self._rates[0].at(now, counters.rows_in),
                rows_out_per_second=self._rates[1].at(now, counters.rows_out),
                events=tuple(self._events),
                running_for=now - self._began,
                dead_letters=str(self._directory.dead_letters),
            )
        )

    def _rest(self) -> None:
        """Record that all processes have ended."""
        with self._going_on_without_room():
            self._crew.disband()
        snapshot = Snapshot(time.monotonic(), self._crew.members(), intent=self._intent)
        status = status_of(snapshot, self._memory, self._background(), self._status)
        status = with_rows_out(status, self._ports.rows_delivered())
        self._status = at_rest(status, _wall_clock())
        with self._going_on_without_room():
            self._write_status()

    def _background(self) -> Background:
        return Background(_wall_clock(), self._ports.limits, one_machine=True, halted=self._halted)

    def _write_status(self) -> None:
        content = json.dumps(status_document(self._status), indent=1)
        files.write(self._directory.status, content.encode())


def _milliseconds() -> int:
    return int(_now().timestamp() * 1000)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251


def _wall_clock() -> str:
    now = _now()
    return f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z"

"""A small world in which decisions are carried out: who holds state, who runs, what a lead says.

It is much simpler than the protocol. What counts is that it knows which volumes hold a pair's
state, so that a test can tell when the last one was given up.
"""

from dataclasses import dataclass, replace

from tandem.policy.controller_state import ControllerState
from tandem.policy.decide import decide
from tandem.policy.decisions import (
    AssignSpare,
    Decision,
    Kill,
    Promote,
    RecordEvent,
    Replace,
    Restart,
    Start,
)
from tandem.policy.snapshot import Life, MemberPlace, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.reports import (
    DriverState,
    LeadReport,
    MemberReport,
    MergeState,
    PairReport,
    ReplicaState,
    SeatReport,
    SplitState,
)
from tandem_core.model.states import MemberKind, SeatState

LIMITS = Timeouts()

_PLACES = (
    MemberPlace("split-0", MemberKind.SPLIT),
    MemberPlace("split-1", MemberKind.SPLIT),
    MemberPlace("pair-0-a", MemberKind.REPLICA, pair="pair-0"),
    MemberPlace("pair-0-b", MemberKind.REPLICA, pair="pair-0"),
    MemberPlace("pair-1-a", MemberKind.REPLICA, pair="pair-1"),
    MemberPlace("pair-1-b", MemberKind.REPLICA, pair="pair-1"),
    MemberPlace("merge-0", MemberKind.MERGE, slot=0),
    MemberPlace("spare-0", MemberKind.SPARE),
)
NAMES = tuple(place.name for place in _PLACES)


@dataclass
class Process:
    """A process that may run, be frozen, or have ended."""

    place: MemberPlace
    volume: str | None = None
    life: Life = Life.ABSENT
    run: int = 0
    started: float = 0.0
    ended: float = 0.0
    code: int | None = None
    frozen_since: float | None = None


class World:
    """Takes faults, carries decisions out, and remembers what was said."""

    def __init__(self) -> None:
        self.now = 100.0
        self.processes = {place.name: Process(place) for place in _PLACES}
        self.full: dict[str, str] = {}
        """Volumes that hold the state of a pair."""
        self.recorded: set[str] = set()
        """Volumes that the lead counts as full; it learns of a loss only when they are given up."""
        self.begun: set[str] = set()
        """Pairs whose state cannot be had from nothing any more."""
        self.seats: dict[str, list[str]] = {"pair-0": [], "pair-1": []}
        self.memory = ControllerState()
        self.said: list[Promote | RecordEvent] = []
        self.born = 0
        self.vanished: set[str] = set()

    # --- faults and time ----------------------------------------------------------------------

    def end(self, name: str, code: int) -> None:
        process = self.processes[name]
        if process.life in {Life.STARTING, Life.UP}:
            process.life, process.code, process.ended = Life.ENDED, code, self.now
            process.frozen_since = None

    def lose(self, name: str) -> None:
        """The process ends and its volume vanishes, unless the pair's state would go with it."""
        volume = self.processes[name].volume
        pair = self.full.get(volume or "")
        if volume is not None and pair is not None and self._copies(pair) > 1:
            self.end(name, 1)
            self.full.pop(volume)
            self.vanished.add(volume)

    def _copies(self, pair: str) -> int:
        return sum(each == pair for each in self.full.values())

    def freeze(self, name: str) -> None:
        process = self.processes[name]
        if process.life is Life.UP and process.frozen_since is None:
            process.frozen_since = self.now

    def thaw(self, name: str) -> None:
        self.processes[name].frozen_since = None

    def turn(self, seconds: float) -> None:
        """Time passes, processes come up, replicas get seats and copy state."""
        self.now += seconds
        for process in self.processes.values():
            if process.life is Life.STARTING:
                process.life = Life.UP
            elif process.life is Life.UP and process.frozen_since is None:
                self._join(process)

    def _join(self, process: Process) -> None:
        pair, volume = process.place.pair, process.volume
        if pair is None or volume is None:
            return
        seats = self.seats[pair]
        if volume not in seats and len(seats) < 2:
            seats.append(volume)
        elif volume in seats and volume not in self.full:
            twins = [each for each in seats if each in self.full]
            if pair not in self.begun or any(self._answers(each) for each in twins):
                self.full[volume] = pair
                self.recorded.add(volume)
                self.begun.add(pair)

    def _answers(self, volume: str) -> bool:
        return any(
            p.volume == volume and p.life is Life.UP and p.frozen_since is None
            for p in self.processes.values()
        )

    # --- observe, decide, act -----------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        leading = [
            n for n in ("split-0", "split-1") if self._answers(self.processes[n].volume or "")
        ]
        lead = self._lead() if leading else None
        volume = self.processes[leading[0]].volume if leading else None
        return Snapshot(self.now, tuple(map(self._member, self.processes.values())), lead, volume)

    def decide(self) -> tuple[Decision, ...]:
        outcome = decide(self.snapshot(), self.memory, LIMITS)
        self.memory = outcome.memory
        for decision in outcome.decisions:
            self._act(decision)
        return outcome.decisions

    def _act(self, decision: Decision) -> None:
        match decision:
            case Start(name, volume, _):
                self._start(self.processes[name], volume)
            case Restart(name, volume, _):
                assert self.processes[name].volume == volume
                self._start(self.processes[name], volume)
            case Replace(name, volume, _):
                self._give_up(volume)
                self._start(self.processes[name], None)
            case Kill(name, _):
                self.end(name, -9)
            case AssignSpare(spare, name, volume, _):
                self._give_up(volume)
                warm, dead = self.processes[spare], self.processes[name]
                self.processes[name] = replace(warm, place=dead.place, run=dead.run + 1)
                self.processes[spare] = Process(warm.place, run=warm.run)
            case Promote() | RecordEvent():
                self.said.append(decision)

    def _start(self, process: Process, volume: str | None) -> None:
        assert process.life in {Life.ABSENT, Life.ENDED}
        if volume is None:
            self.born += 1
            volume = f"volume-{self.born}"
        process.volume, process.life, process.started = volume, Life.STARTING, self.now
        process.run += 1
        process.code = process.frozen_since = None

    def _give_up(self, volume: str) -> None:
        assert not self._runs(volume)
        self.full.pop(volume, None)
        self.recorded.discard(volume)
        for seats in self.seats.values():
            if volume in seats:
                seats.remove(volume)

    def _runs(self, volume: str) -> bool:
        return any(
            p.volume == volume and p.life in {Life.STARTING, Life.UP}
            for p in self.processes.values()
        )

    def _member(self, process: Process) -> MemberSnapshot:
        return MemberSnapshot(
            place=process.place,
            life=process.life,
            volume=process.volume,
            run=process.run,
            started=process.started,
            ended=process.ended if process.life is Life.ENDED else None,
            exit_code=process.code,
            silent_since=process.frozen_since,
            volume_there=process.volume not in self.vanished,
            report=self._report(process),
        )

    def _report(self, process: Process) -> MemberReport | None:
        if process.life in {Life.ABSENT, Life.STARTING} or process.volume is None:
            return None
        part: SplitState | ReplicaState | MergeState = SplitState()
        if process.place.kind in {MemberKind.REPLICA, MemberKind.SPARE}:
            full = process.volume in self.full
            state = DriverState.RUNNING if full else DriverState.JOINING
            part = ReplicaState(state=state, committed=5, verified=full)
        elif process.place.kind is MemberKind.MERGE:
            part = MergeState(active=True)
        return MemberReport(process.volume, process.run, part)

    def _lead(self) -> LeadReport:
        pairs = tuple(
            PairReport(
                pair,
                tuple(
                    SeatReport(
                        volume,
                        state=SeatState.VERIFIED if volume in self.recorded else SeatState.JOINING,
                        committed=5,
                        synced=volume in self.recorded,
                        silent=not self._answers(volume),
                    )
                    for volume in seats
                ),
            )
            for pair, seats in self.seats.items()
        )
        return LeadReport(term=1, epoch=5, delivered=5, generation=1, pairs=pairs)

"""The processes in a cluster's pods: much simpler than the protocol, but they know who holds state.

A process boots, takes a seat of its pair, copies its twin's state, and is in step then. What it
holds lies on its pod's volume: it survives the process, and goes with the pod.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tests.control.lead_book import LeadBook
from tests.kube.cluster import Cluster

from tandem.control.pods import Pod, Run, read_pod
from tandem.kube.kinds import CONFIG_MAP, NODE, POD
from tandem.kube.objects import uid_of
from tandem_core.contract.intent_text import read_intent_text
from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import (
    DriverState,
    LeadReport,
    MemberReport,
    MergeState,
    PairReport,
    ReplicaState,
    SeatReport,
    SinkReport,
    SplitState,
    Trouble,
)
from tandem_core.model.kubernetes_names import INTENT_KEY
from tandem_core.model.states import MemberKind, SeatState, SinkClass
from tandem_core.network.member_client import Observation


@dataclass
class Process:
    """What runs in a pod at the moment."""

    kind: MemberKind
    pair: str | None
    booting: int = 2
    """Steps until it is up."""
    assigned: str | None = None
    heard: float | None = None
    silent_since: float | None = None


@dataclass
class Plane:
    """See `tandem.control.members.Members`."""

    cluster: Cluster
    processes: dict[Run, Process] = field(default_factory=dict)
    holding: dict[str, str] = field(default_factory=dict)
    """Volumes that hold the state of a pair."""
    begun: set[str] = field(default_factory=set)
    """Pairs whose state cannot be had from nothing any more."""
    seats: dict[str, list[str]] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    """Pods whose processes stand still, by uid."""
    deaf: bool = False
    """Whether spares cannot be told where they belong."""
    refusing: bool = False
    """Whether replicas never come up."""
    vulnerable: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    """What is wrong with sources."""
    completed: bool = False
    rows_out: int = 70
    epoch: int = 0
    lead: str | None = None
    book: LeadBook = field(default_factory=LeadBook)
    stuck: set[str] = field(default_factory=set)
    """Pairs whose replicas never get the state of their parents."""
    watched: frozenset[Run] = frozenset()
    tokens: set[str] = field(default_factory=set)
    _read: tuple[int, list[Pod]] = field(default=(-1, []))

    # --- the port -----------------------------------------------------------------------------

    def look(self, pods: Iterable[Pod], token: str) -> Mapping[Run, Observation]:
        there = {pod.run: pod for pod in pods if pod.can_be_asked}
        self.watched = frozenset(there)
        self.tokens.add(token)
        return {run: self._look(run, pod) for run, pod in there.items()}

    def ask(self, pod: Pod, token: str) -> MemberReport | None:
        known = self.processes.get(pod.run)
        return self._report(pod, known) if known is not None and self._answers(pod) else None

    def assign(self, pod: Pod, token: str, pair: str) -> None:
        if self.deaf or not self._answers(pod):
            raise OSError("no answer")
        self.processes[pod.run].assigned = pair

    # --- time ---------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Let every process do one step, after the cluster has done its own."""
        pods = {pod.run: pod for pod in self._pods()}
        there = {pod.uid for pod in pods.values()}
        self._forget_gone(there)
        self._lead_on(list(pods.values()))
        if self.lead is not None:
            self._read_intent()
        for run, pod in pods.items():
            process = self.processes.setdefault(run, Process(pod.place.kind, pod.place.pair))
            if self._answers(pod):
                self._step(pod, process)
                process.heard, process.silent_since = now, None
            elif process.silent_since is None:
                process.silent_since = now
        self.processes = {run: p for run, p in self.processes.items() if run in pods}
        self.epoch += bool(self.begun)

    def _pods(self) -> list[Pod]:
        if self._read[0] != self.cluster.revision:
            found = (read_pod(document) for document in self.cluster.list(POD, None))
            pods = [pod for pod in found if pod is not None and pod.address is not None]
            self._read = self.cluster.revision, pods
        return self._read[1]

    def _forget_gone(self, there: set[str]) -> None:
        """What lay in pods that are gone is gone; the lead frees their seats."""
        self.holding = {v: p for v, p in self.holding.items() if v.rpartition(".")[0] in there}
        for seats in self.seats.values():
            seats[:] = [volume for volume in seats if volume.rpartition(".")[0] in there]

    def _answers(self, pod: Pod) -> bool:
        node = self.cluster.get(NODE, None, pod.node or "")
        reachable = node["status"]["conditions"][0]["status"] == "True"
        state = pod.document["status"]["containerStatuses"][0]["state"]
        return reachable and "running" in state and pod.uid not in self.frozen and not pod.over

    def _step(self, pod: Pod, process: Process) -> None:
        if process.booting:
            process.booting -= not (self.refusing and process.kind is MemberKind.REPLICA)
            return
        pair = process.assigned if process.kind is MemberKind.SPARE else process.pair
        if pair is not None and not pod.going:
            self._join(_volume(pod), pair)

    def _read_intent(self) -> None:
        """Let the lead cut and retire what the intent allows, and its merges open and end slots."""
        for document in self.cluster.list(CONFIG_MAP, None):
            if INTENT_KEY not in document["data"]:
                continue
            if self.book.uid != uid_of(document):
                self.book = LeadBook(uid_of(document))
            with suppress(Undecodable):
                intent = read_intent_text(document["data"][INTENT_KEY])
                merges = {p.place.slot for p in self._pods() if self._answers(p) and not p.going}
                holders = (pair for v, pair in self.holding.items() if self.speaks(v))
                self.book.take_intent(intent, Counter(holders))
                self.book.take_slots(intent, {slot for slot in merges if slot is not None})
        if self.book.pairs:
            self.seats = {p: seats for p, seats in self.seats.items() if p in self.book.pairs}
            self.holding = {v: p for v, p in self.holding.items() if p in self.book.pairs}

    def _may_begin(self, pair: str) -> bool:
        """Whether a pair that nobody holds can be had: from nothing at first, else from parents."""
        parents = self.book.pairs.get(pair, ())
        holders = {p for volume, p in self.holding.items() if self.speaks(volume)}
        return pair not in self.begun and pair not in self.stuck and holders.issuperset(parents)

    def _join(self, volume: str, pair: str) -> None:
        if self.book.pairs and pair not in self.book.pairs:
            return
        seats = self.seats.setdefault(pair, [])
        if volume not in seats:
            if len(seats) > 1:
                silent = [each for each in seats if not self.speaks(each)]
                if not silent:
                    return
                seats.remove(silent[0])
            seats.append(volume)
        elif volume not in self.holding:
            twins = [each for each in seats if each in self.holding]
            if any(self.speaks(each) for each in twins) or self._may_begin(pair):
                self.holding[volume] = pair
                self.begun.add(pair)

    def speaks(self, volume: str) -> bool:
        return any(_volume(pod) == volume and self._answers(pod) for pod in self._pods())

    def _lead_on(self, pods: list[Pod]) -> None:
        splits = [pod for pod in pods if pod.place.kind is MemberKind.SPLIT]
        able = [_volume(p) for p in splits if self._answers(p) and not p.going]
        if self.lead not in able:
            self.lead = min(able, default=None)

    # --- what they say ------------------------------------------------------------------------

    def _look(self, run: Run, pod: Pod) -> Observation:
        process = self.processes.get(run)
        if process is None:
            return Observation()
        report = self._report(pod, process) if process.heard is not None else None
        return Observation(process.heard, process.silent_since, report)

    def _report(self, pod: Pod, process: Process) -> MemberReport:
        volume = _volume(pod)
        if process.kind is MemberKind.SPLIT:
            lead = self._summary() if volume == self.lead else None
            return MemberReport(volume, pod.runs, SplitState(lead=lead, troubles=self.troubles))
        if process.kind is MemberKind.MERGE:
            active = self._is_active(pod)
            sinks = (SinkReport("out", SinkClass.TRANSACTIONAL, self.epoch),)
            return MemberReport(
                volume, pod.runs, MergeState(active, self.epoch, self.rows_out, 0, sinks)
            )
        return MemberReport(volume, pod.runs, self._replica(volume, process))

    def _is_active(self, pod: Pod) -> bool:
        merges = [p for p in self._pods() if p.place.slot == pod.place.slot and not p.going]
        able = [p.uid for p in merges if p.place.slot is not None and self._answers(p)]
        return pod.uid == min(able, default=None)

    def _replica(self, volume: str, process: Process) -> ReplicaState:
        if process.booting:
            return ReplicaState(DriverState.BOOTING)
        if process.kind is MemberKind.SPARE and process.assigned is None:
            return ReplicaState(state=DriverState.SPARE)
        full = volume in self.holding
        doing = DriverState.RUNNING if full else DriverState.JOINING
        return ReplicaState(doing, self.epoch, verified=full, pair=process.assigned)

    def _summary(self) -> LeadReport:
        pairs = tuple(
            PairReport(
                pair,
                tuple(
                    SeatReport(
                        volume,
                        state=SeatState.VERIFIED if volume in self.holding else SeatState.JOINING,
                        committed=self.epoch,
                        synced=volume in self.holding,
                        silent=not self.speaks(volume),
                    )
                    for volume in seats
                ),
            )
            for pair in self.book.pairs
            for seats in [self.seats.get(pair, [])]
        )
        return LeadReport(
            term=1,
            epoch=self.epoch,
            delivered=self.epoch,
            generation=self.book.generation,
            rows_in=100,
            pairs=pairs,
            vulnerable=self.vulnerable,
            completed=self.completed,
            open_slots=tuple(self.book.open_slots),
            ending_slots=tuple(self.book.ending_slots),
            next_slot=self.book.next_slot,
        )


def _volume(pod: Pod) -> str:
    return f"{pod.uid}.0"

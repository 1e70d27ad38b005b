"""The input of a decision: an immutable snapshot of a pipeline.

Times are seconds of any clock that only moves forward. Everything here was observed; nothing is
inferred.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

from tandem.policy.standings import Standings
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import (
    LeadReport,
    MemberReport,
    MergeState,
    ReplicaState,
    SeatReport,
    Trouble,
)
from tandem_core.model.states import ChangeStage, MemberKind, PairStanding, PairState


class Life(StrEnum):
    """The life-cycle state of a member's process or pod."""

    ABSENT = "absent"
    """Never started, or its volume has been discarded since."""
    STARTING = "starting"
    """Started, has not answered yet."""
    UP = "up"
    """Has answered since it started."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why a member cannot continue, where only the user can fix the cause."""

    reason: str
    message: str
    hint: str = ""

    @property
    def explanation(self) -> str:
        """The message and the hint. Messages of Spark end with a full stop."""
        return f"{self.message.rstrip('.')}; {self.hint}" if self.hint else self.message

    @property
    def text(self) -> str:
        """All of it in one line."""
        return f"{self.reason}: {self.explanation}"


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """A place in the roster: the purpose of a member, whichever process or pod fills it."""

    name: str
    kind: MemberKind
    pair: str | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class MemberSnapshot:
    """A place and the process or pod that fills it."""

    place: MemberPlace
    life: Life = Life.ABSENT
    volume: str | None = None
    """None: the next process gets a new one."""
    volume_there: bool = True
    """Whether the volume still exists. Only a volume that was there can vanish."""
    run: int = 0
    """The number of the process at this place; distinguishes one from the next."""
    started: float = 0.0
    ended: float | None = None
    exit_code: int | None = None
    silent_since: float | None = None
    """When the first unanswered request was sent; None while the member answers."""
    complaint: Complaint | None = None
    report: MemberReport | None = None
    """The last report of this process, not of an earlier one."""
    pid: int | None = None
    node: str | None = None
    """The node of a pod; None on one machine, and of a pod that has no node yet."""
    hosts: frozenset[str] | None = None
    """Nodes that would accept a pod created in its place, its own included; None if unknown."""
    note: str = ""
    """What its environment reports about it, such as why it cannot be started."""
    outdated: bool = False
    """Whether the pod template has changed since this pod was created."""
    leaving: bool = False
    """Whether its place is no longer wanted: it is to hand over what it has, and to end."""
    dismissed: float | None = None
    """When this process was asked to leave."""

    @property
    def name(self) -> str:
        """The name of its place."""
        return self.place.name

    @property
    def kind(self) -> MemberKind:
        """The kind of its place."""
        return self.place.kind

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self.life in {Life.STARTING, Life.UP}

    @property
    def replica(self) -> ReplicaState | None:
        """Its reported state as a replica or spare."""
        return self.report.replica if self.report is not None else None

    @property
    def merge(self) -> MergeState | None:
        """Its reported state as a merge."""
        return self.report.merge if self.report is not None else None

    @property
    def warm(self) -> bool:
        """Whether its Spark driver is up."""
        return self.replica is not None and self.replica.warm

    def hosts_beside(self, node: str | None) -> frozenset[str]:
        """Nodes other than this one that are known to accept a pod created in its place."""
        return (self.hosts or frozenset()) - {node}

    @property
    def fits_nowhere(self) -> bool:
        """Whether no node would accept a pod created in its place."""
        return self.hosts is not None and not self.hosts

    def silent_for(self, now: float) -> float:
        """How long it has not answered; 0 while it does."""
        return 0.0 if self.silent_since is None else max(0.0, now - self.silent_since)


@dataclass(frozen=True)
class Snapshot:
    """All members and the lead's report at one moment.

    Has no `__slots__`, so that indexes by pair and by volume are built once and cached.
    """

    now: float
    members: tuple[MemberSnapshot, ...]
    """One for each place of the roster, in its order."""
    lead: LeadReport | None = None
    """The lead's report; None if no lead has reported recently."""
    lead_volume: str | None = None
    intent: Intent | None = None
    """The intent as recorded; without it all pairs are current."""

    @classmethod
    def taken(
        cls,
        now: float,
        members: tuple[MemberSnapshot, ...],
        fresh: Collection[str],
        intent: Intent | None = None,
    ) -> Self:
        """Builds a snapshot in which the lead is the member that leads in the highest term.

        Only reports of members that have answered recently count: `fresh`, by name.
        """
        leads = [
            (member.report.lead, member.volume)
            for member in members
            if member.life is Life.UP and member.name in fresh
            if member.report is not None and member.report.lead is not None
        ]
        lead, volume = max(leads, key=lambda each: each[0].term, default=(None, None))
        return cls(now, members, lead, volume, intent)

    def replicas_of(self, pair: str) -> tuple[MemberSnapshot, ...]:
        """The replicas of a pair, in the order of their names."""
        return tuple(self._replicas.get(pair, ()))

    def whole_pair(self) -> PairState:
        """Return the state of a pair that has all its replicas: one has no twin to pair with."""
        replicas = max((len(self.replicas_of(pair)) for pair in self.pairs()), default=0)
        return PairState.PAIRED if replicas > 1 else PairState.ALONE

    @cached_property
    def _replicas(self) -> Mapping[str, list[MemberSnapshot]]:
        found: dict[str, list[MemberSnapshot]] = {}
        for member in self.members:
            if member.place.pair is not None and not member.leaving:
                found.setdefault(member.place.pair, []).append(member)
        return found

    def seat(self, volume: str | None) -> SeatReport | None:
        """The seat of a volume, if a lead reports one."""
        return self._seats.get(volume) if volume is not None else None

    @cached_property
    def _seats(self) -> Mapping[str, SeatReport]:
        pairs = self.lead.pairs if self.lead is not None else ()
        return {seat.volume: seat for pair in pairs for seat in pair.seats}

    def of_kind(self, kind: MemberKind) -> tuple[MemberSnapshot, ...]:
        """The members of one kind."""
        return tuple(member for member in self.members if member.kind is kind)

    def delivers(self, slot: int | None) -> bool:
        """Whether a merge slot is open, as far as is known."""
        open_slots = self.lead.open_slots if self.lead is not None else ()
        return not open_slots or slot in open_slots

    def troubles(self) -> tuple[Trouble, ...]:
        """Failing sources and sinks; the same failure at several members or partitions once."""
        reports = [m.report for m in self.members if m.life is Life.UP and m.report is not None]
        told = [trouble for report in reports for trouble in report.troubles]
        first = {(trouble.reason, trouble.subject): trouble for trouble in reversed(told)}
        return tuple(first[key] for key in sorted(first))

    def named(self, name: str) -> MemberSnapshot:
        """The member at a place.

        Raises:
            KeyError: no place has this name.
        """
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(name)

    def pairs(self) -> tuple[str, ...]:
        """The names of the current pairs."""
        standings = self.standings
        return standings.current if standings is not None else tuple(self._replicas)

    def all_pairs(self) -> tuple[str, ...]:
        """The names of all pairs, the current ones first; those that are gone have members."""
        known = self.standings
        built = (*known.shadows, *known.muted) if known is not None else ()
        return tuple(dict.fromkeys((*self.pairs(), *built, *self._replicas)))

    def standing(self, pair: str | None) -> PairStanding:
        """The standing of a pair; a member of no pair counts as current."""
        if pair is None or self.standings is None:
            return PairStanding.CURRENT
        return self.standings.of(pair)

    def is_current(self, pair: str | None) -> bool:
        """Whether a pair counts in the status; so does a member of no pair."""
        return self.standing(pair) is PairStanding.CURRENT

    def is_changing(self) -> bool:
        """Whether a change of pairs is under way, or pairs of one are still there."""
        change = self.intent.change if self.intent is not None else None
        under_way = change is not None and change.stage is not ChangeStage.ABANDONED
        return under_way or len(self.all_pairs()) > len(self.pairs())

    @cached_property
    def standings(self) -> Standings | None:
        """The standings of pairs; None if the intent is not known."""
        return None if self.intent is None else Standings.judged(self.intent, self.lead)

"""The decide step of the reconcile loop: observe, decide, record, act."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tandem.policy.controller_state import ControllerState, PairMemory, PodEvictions, RecoveryStage
from tandem.policy.decisions import (
    Complete,
    Decision,
    EvictPod,
    Halt,
    Promote,
    RecordEvent,
    Wait,
    Withhold,
)
from tandem.policy.recovery.departures import see_off
from tandem.policy.recovery.failover import update_pair
from tandem.policy.recovery.pairs import look_at
from tandem.policy.recovery.placement import shared_nodes
from tandem.policy.recovery.processes import count_crashes, recover_processes
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.status.event_rules import (
    failing,
    failures,
    lead_changes,
    lead_of,
    losses,
    new_member_events,
    waiting_since,
)
from tandem.policy.status.member_events import remember_names
from tandem.policy.status.totals import Totals, add_up
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import COMPLETED
from tandem_core.model.states import EventReason, MemberKind, PairStanding

_SHADOW = PairStanding.SHADOW
_TOLD_OF_ROLES = frozenset({EventReason.FAILOVER, EventReason.CATCH_UP_STARTED, EventReason.PAIRED})


@dataclass(frozen=True, slots=True)
class Outcome:
    """Decisions, in the order in which to carry them out, and the memory after them."""

    decisions: tuple[Decision, ...]
    memory: ControllerState


RecoverMembers = Callable[[Snapshot, ControllerState, Timeouts], Iterable[Decision]]
"""Decides about members that failed: `recover_processes` where the supervisor starts them,
`recover_pods` where Kubernetes does."""


def decide(
    snapshot: Snapshot,
    memory: ControllerState,
    limits: Timeouts,
    recover: RecoverMembers = recover_processes,
) -> Outcome:
    """Decides what to do about a running pipeline.

    Recovery comes first, since rows may wait for it. Once all results are delivered, members exit
    one after the other; from then on nothing is recovered and no role changes.
    """
    records, after = _take_reports(snapshot, memory)
    if after.completed:
        return Outcome((*records, Complete("all results are delivered")), after)
    crashes = count_crashes(snapshot, memory.crashes, limits)
    pairs, roles = _update_pairs(snapshot, memory, limits)
    after = replace(
        after, crashes=crashes, pairs=pairs, totals=_count_failovers(after.totals, roles)
    )
    recovery = (*recover(snapshot, after, limits), *see_off(snapshot, after, limits))
    after = replace(after, moves=_remember_evictions(snapshot, memory.moves, recovery))
    return Outcome((*recovery, *roles, *records), after)


def rests_on_roles(decision: Decision) -> bool:
    """Whether roles must be recorded before a decision is carried out, or its event is written."""
    if isinstance(decision, RecordEvent):
        return decision.event in _TOLD_OF_ROLES
    return not isinstance(decision, Halt | Withhold | Wait | Complete)


def without_roles(outcome: Outcome, before: ControllerState) -> Outcome:
    """What is left of an outcome whose roles cannot be recorded: nothing is done to members.

    Roles are those of `before`. Keep its pairs: then roles and their events are decided again.
    """
    after, totals = outcome.memory, outcome.memory.totals
    pairs = {
        name: replace(pair, primary=before.pair(name).primary) for name, pair in after.pairs.items()
    }
    counters = replace(totals.counters, take_overs=before.totals.counters.take_overs)
    memory = replace(
        after, pairs=pairs, moves=before.moves, totals=replace(totals, counters=counters)
    )
    kept = (each for each in outcome.decisions if not rests_on_roles(each))
    return Outcome(tuple(kept), memory)


def is_completed(snapshot: Snapshot) -> bool:
    """Whether the lead reports completion or a member has exited because of it; this is final."""
    if snapshot.lead is not None and snapshot.lead.completed:
        return True
    return any(
        member.life is Life.ENDED and member.exit_code == COMPLETED for member in snapshot.members
    )


def low_priority_members(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> frozenset[str]:
    """Members that should run at low CPU priority.

    These are replicas that catch up with their twin after a failure, shadows until they are synced,
    and spares until they are warm. Not the replicas of a starting pair, nor one whose twin does not
    hold the state: its pair waits for it.
    """
    names = {shadow.name for shadow in _late_shadows(snapshot)}
    for name in snapshot.pairs():
        pair, known = look_at(snapshot, name, limits), memory.pair(name)
        for replica in pair.replicas:
            twin = pair.twin_of(replica.member.name)
            behind = (
                known.stage is not RecoveryStage.WHOLE and replica.member.volume != known.primary
            )
            if replica.member.running and behind and twin is not None and twin.holds:
                names.add(replica.member.name)
    for spare in snapshot.of_kind(MemberKind.SPARE):
        if spare.running and not spare.warm:
            names.add(spare.name)
    return frozenset(names)


def _late_shadows(snapshot: Snapshot) -> Iterator[MemberSnapshot]:
    """Shadows that run and are not level with the pipeline yet."""
    for member in snapshot.members:
        seat = snapshot.seat(member.volume)
        is_late = seat is None or not seat.synced
        if member.running and is_late and snapshot.standing(member.place.pair) is _SHADOW:
            yield member


def _take_reports(
    snapshot: Snapshot, memory: ControllerState
) -> tuple[list[RecordEvent], ControllerState]:
    """Takes the reports of members: events, and the controller state after them."""
    lead = lead_of(snapshot, memory.lead)
    lost = frozenset(snapshot.lead.lost if snapshot.lead is not None else ())
    names = remember_names(memory.names, snapshot)
    told, happened = new_member_events(snapshot, memory.happened, names)
    completed = memory.completed or is_completed(snapshot)
    # Once everything is delivered the lead exits too, and other splits lead for a moment.
    changes = () if completed else lead_changes(snapshot, memory.lead, lead)
    failed = failures(snapshot, memory.failing)
    records = [*changes, *losses(snapshot, memory.lost, names), *failed, *told]
    primaries = [memory.pair(name).primary for name in snapshot.pairs()]
    return records, replace(
        memory,
        lead=lead,
        waiting_since=waiting_since(snapshot, memory.waiting_since),
        lost=memory.lost | lost,
        failing=failing(snapshot),
        happened=happened,
        names=names,
        totals=add_up(memory.totals, snapshot, primaries),
        completed=completed,
    )


def _update_pairs(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> tuple[Mapping[str, PairMemory], list[Promote | RecordEvent]]:
    """Updates the current pairs. All others have no roles, and no events of failures."""
    pairs: dict[str, PairMemory] = {}
    said: list[Promote | RecordEvent] = []
    for name in snapshot.pairs():
        steps, pairs[name] = update_pair(look_at(snapshot, name, limits), memory.pair(name))
        said += steps
    return pairs, said


def _count_failovers(totals: Totals, said: list[Promote | RecordEvent]) -> Totals:
    counters = totals.counters
    new = sum(isinstance(s, RecordEvent) and s.event is EventReason.FAILOVER for s in said)
    return replace(totals, counters=replace(counters, take_overs=counters.take_overs + new))


def _remember_evictions(
    snapshot: Snapshot, before: PodEvictions | None, decisions: tuple[Decision, ...]
) -> PodEvictions | None:
    """Remembers evictions until no pair or split group shares a node."""
    if any(isinstance(decision, EvictPod) for decision in decisions):
        return PodEvictions(snapshot.now, before.count + 1 if before is not None else 1)
    return before if shared_nodes(snapshot) else None

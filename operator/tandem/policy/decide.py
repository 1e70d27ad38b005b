"""The decision: observe, then this, then record and act."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tandem.policy.controller_state import Memory, Moves, PairMemory, Stage
from tandem.policy.decisions import Complete, Decision, Move, Promote, Record
from tandem.policy.happenings import (
    changes_of_lead,
    failing,
    failures,
    lead_of,
    losses,
    passed_on,
    waiting_since,
)
from tandem.policy.recovery.pairs import look_at
from tandem.policy.recovery.placement import shared_nodes
from tandem.policy.recovery.processes import count_crashes, recover
from tandem.policy.roles import follow
from tandem.policy.snapshot import Life, Snapshot
from tandem.policy.status.totals import Totals, add_up
from tandem.policy.timeouts import Limits
from tandem_core.contract.exit_codes import COMPLETED
from tandem_core.model.states import EventReason, MemberKind


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to do, in this order, and what to remember."""

    decisions: tuple[Decision, ...]
    memory: Memory


Tending = Callable[[Snapshot, Memory, Limits], Iterable[Decision]]
"""What is done about members that are not as they should be: `recovery.recover` where whoever
decides starts them, `pods.tend` where Kubernetes does."""


def decide(snapshot: Snapshot, memory: Memory, limits: Limits, tend: Tending = recover) -> Outcome:
    """Decide what is to be done about a pipeline that is meant to run.

    Recovery comes first, since rows may wait for it. When everything is delivered members end one
    after the other; then nothing is recovered and no role changes.
    """
    records, after = _listen(snapshot, memory)
    if after.completed:
        return Outcome((*records, Complete("everything is delivered")), after)
    crashes = count_crashes(snapshot, memory.crashes, limits)
    pairs, roles = _follow_pairs(snapshot, memory, limits)
    after = replace(after, crashes=crashes, pairs=pairs, totals=_count(after.totals, roles))
    tended = tuple(tend(snapshot, after, limits))
    after = replace(after, moves=_moves(snapshot, memory.moves, tended))
    return Outcome((*tended, *roles, *records), after)


def is_completed(snapshot: Snapshot) -> bool:
    """Whether the lead says so, or a member has ended because of it: the record is final."""
    if snapshot.lead is not None and snapshot.lead.completed:
        return True
    return any(
        member.life is Life.ENDED and member.exit_code == COMPLETED for member in snapshot.members
    )


def yielding(snapshot: Snapshot, memory: Memory, limits: Limits) -> frozenset[str]:
    """Members that should leave the processor to others.

    A replica that catches up with its twin after a failure, and a spare until it is warm. When a
    pair begins neither yields, and replicas that nobody computes for do not: their pair waits.
    """
    names = set()
    for name in snapshot.pairs():
        pair, known = look_at(snapshot, name, limits), memory.pair(name)
        for replica in pair.replicas:
            twin = pair.twin_of(replica.member.name)
            behind = known.stage is not Stage.WHOLE and replica.member.volume != known.primary
            if replica.member.running and behind and twin is not None and twin.holds:
                names.add(replica.member.name)
    for spare in snapshot.of_kind(MemberKind.SPARE):
        if spare.running and not spare.warm:
            names.add(spare.name)
    return frozenset(names)


def _listen(snapshot: Snapshot, memory: Memory) -> tuple[list[Record], Memory]:
    """Take in what members say."""
    lead = lead_of(snapshot, memory.lead)
    lost = frozenset(snapshot.lead.lost if snapshot.lead is not None else ())
    told, happened = passed_on(snapshot, memory.happened)
    completed = memory.completed or is_completed(snapshot)
    # When everything is delivered the lead ends too, and others lead for a moment.
    changes = () if completed else changes_of_lead(memory.lead, lead)
    failed = failures(snapshot, memory.failing)
    records = [*changes, *losses(snapshot, memory.lost), *failed, *told]
    primaries = [pair.primary for pair in memory.pairs.values()]
    return records, replace(
        memory,
        lead=lead,
        waiting_since=waiting_since(snapshot, memory.waiting_since),
        lost=memory.lost | lost,
        failing=failing(snapshot),
        happened=happened,
        totals=add_up(memory.totals, snapshot, primaries),
        completed=completed,
    )


def _follow_pairs(
    snapshot: Snapshot, memory: Memory, limits: Limits
) -> tuple[Mapping[str, PairMemory], list[Promote | Record]]:
    pairs: dict[str, PairMemory] = {}
    said: list[Promote | Record] = []
    for name in snapshot.pairs():
        steps, pairs[name] = follow(look_at(snapshot, name, limits), memory.pair(name))
        said += steps
    return pairs, said


def _count(totals: Totals, said: list[Promote | Record]) -> Totals:
    counters = totals.counters
    new = sum(isinstance(s, Record) and s.event is EventReason.TAKE_OVER for s in said)
    return replace(totals, counters=replace(counters, take_overs=counters.take_overs + new))


def _moves(
    snapshot: Snapshot, before: Moves | None, decisions: tuple[Decision, ...]
) -> Moves | None:
    """Remember moves until nobody shares a node any more."""
    if any(isinstance(decision, Move) for decision in decisions):
        return Moves(snapshot.now, before.count + 1 if before is not None else 1)
    return before if shared_nodes(snapshot) else None

"""Evictions of healthy pods: to spread twins and splits over nodes, and to roll out a template.

Twins on one node fail together, and so do splits. Kubernetes spreads pods when it schedules them
and never moves them later; nor does it replace drivers of an older template. So a pod that now fits
another node, or is outdated, is evicted: only while everything has two copies and no pair is built
or retired, one at a time, with back-off if it does not help. No pod is evicted for a template that
fits no node.
"""

from collections.abc import Iterator

from tandem.policy.controller_state import ControllerState, RecoveryStage
from tandem.policy.decisions import EvictPod, Wait, Withhold
from tandem.policy.recovery.processes import can_discard
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.model.states import MemberKind

SPLITS = "splits"
"""The name of the group of all splits, beside the names of pairs."""
OUTDATED = "rollout of the changed template"
NO_NODE_FITS = Complaint(
    "NoNodeFits",
    "no node accepts drivers of the changed template; the running drivers stay",
    "fix spec.pairs.template, or add a node that accepts them",
)


def shared_nodes(snapshot: Snapshot) -> dict[str, str]:
    """Current pairs (and the group of splits) whose members all run on one node, with that node."""
    groups = {pair: snapshot.replicas_of(pair) for pair in snapshot.pairs()}
    groups[SPLITS] = snapshot.of_kind(MemberKind.SPLIT)
    shared = {name: _shared_node(members) for name, members in groups.items()}
    return {name: node for name, node in shared.items() if node is not None}


def evict_one(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> Iterator[EvictPod | Wait]:
    """Evicts at most one pod."""
    moves = memory.moves
    if moves is not None and snapshot.now - moves.last < (pause := limits.pause_after(moves.count)):
        for name, node in shared_nodes(snapshot).items():
            yield Wait(name, f"all on {node}: back-off of {pause:g} s after eviction {moves.count}")
        return
    if _is_settled(snapshot, memory):
        chosen = (
            *_evictions_to_spread(snapshot, memory, limits),
            *_evictions_to_roll_out(snapshot, memory, limits),
        )
        yield from chosen[:1]


def withhold_unplaceable(snapshot: Snapshot) -> Iterator[Withhold]:
    """Withholds a changed template that fits no node."""
    members = (each for each in snapshot.members if snapshot.is_current(each.place.pair))
    if any(member.outdated and member.fits_nowhere for member in members):
        yield Withhold(NO_NODE_FITS)


def _evictions_to_spread(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> Iterator[EvictPod]:
    for name, node in shared_nodes(snapshot).items():
        chosen = _choose_movable(name, snapshot, memory, limits)
        if chosen is not None and chosen.volume is not None:
            group = "all splits" if name == SPLITS else f"all of {name}"
            yield EvictPod(chosen.name, chosen.volume, f"{group} ran on node {node}")


def _evictions_to_roll_out(
    snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> Iterator[EvictPod]:
    """Evictions of outdated drivers, primaries last."""
    primaries = {pair.primary for pair in memory.pairs.values()}
    for member in sorted(snapshot.members, key=lambda member: member.volume in primaries):
        yield from eviction_for_rollout(member, snapshot, limits)


def eviction_for_rollout(
    member: MemberSnapshot, snapshot: Snapshot, limits: Timeouts
) -> Iterator[EvictPod]:
    """The eviction of an outdated driver, if a node accepts it and its twin serves the pair."""
    if not member.outdated or member.fits_nowhere or member.volume is None:
        return
    if can_discard(member, snapshot, limits):
        yield EvictPod(member.name, member.volume, OUTDATED)


def _shared_node(members: tuple[MemberSnapshot, ...]) -> str | None:
    nodes = [member.node for member in members if member.running and member.node is not None]
    return nodes[0] if len(nodes) > 1 and len(set(nodes)) == 1 else None


def _is_settled(snapshot: Snapshot, memory: ControllerState) -> bool:
    """Whether all members are healthy, everything has two copies, and no change is under way."""
    lead = snapshot.lead
    if snapshot.is_changing() or lead is None or lead.vulnerable or lead.lost:
        return False
    members = (member for member in snapshot.members if member.kind is not MemberKind.SPARE)
    if any(member.life is not Life.UP or member.silent_since is not None for member in members):
        return False
    return all(_is_whole(pair, snapshot, memory) for pair in snapshot.pairs())


def _is_whole(pair: str, snapshot: Snapshot, memory: ControllerState) -> bool:
    known = memory.pair(pair)
    twins = len(snapshot.replicas_of(pair)) > 1
    return known.stage is RecoveryStage.WHOLE and (known.paired or not twins)


def _choose_movable(
    name: str, snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> MemberSnapshot | None:
    """A member that fits another node: neither a primary nor the lead."""
    if name == SPLITS:
        others = [
            split
            for split in snapshot.of_kind(MemberKind.SPLIT)
            if split.volume != snapshot.lead_volume
        ]
    else:
        others = [
            replica
            for replica in snapshot.replicas_of(name)
            if replica.volume != memory.pair(name).primary
            if can_discard(replica, snapshot, limits)
        ]
    return next((each for each in others if each.hosts_beside(each.node)), None)

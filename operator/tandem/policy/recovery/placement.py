"""Which pods are well and are to be made anew all the same.

Twins on one node die together, and so do splits. Kubernetes places pods apart when it can and never
moves them later; nor does it replace drivers of an older template. So one that can be placed
elsewhere by now, or is outdated, is given up: only while nothing is at risk, one at a time, with
pauses that grow if it does not help. Nobody is given up for a template that fits no node.
"""

from collections.abc import Iterator

from tandem.policy.controller_state import Memory, Stage
from tandem.policy.decisions import Move, Wait, Withhold
from tandem.policy.recovery.processes import may_give_up
from tandem.policy.snapshot import Complaint, Life, Member, Snapshot
from tandem.policy.timeouts import Limits
from tandem_core.model.states import MemberKind

SPLITS = "splits"
"""How the splits are called among pairs."""
OUTDATED = "its template has changed"
NO_NODE_FITS = Complaint(
    "NoNodeFits",
    "no node takes drivers of the changed template, so they stay as they are",
    "mend spec.pairs.template, or give the cluster a node that takes them",
)


def shared_nodes(snapshot: Snapshot) -> dict[str, str]:
    """Pairs, and the splits, that would be lost with one node, and that node."""
    groups = {pair: snapshot.replicas_of(pair) for pair in snapshot.pairs()}
    groups[SPLITS] = snapshot.of_kind(MemberKind.SPLIT)
    shared = {name: _shared_node(members) for name, members in groups.items()}
    return {name: node for name, node in shared.items() if node is not None}


def move(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Move | Wait]:
    """At most one pod that is to be made anew."""
    moves = memory.moves
    if moves is not None and snapshot.now - moves.last < (pause := limits.pause_after(moves.count)):
        for name, node in shared_nodes(snapshot).items():
            yield Wait(name, f"on {node} alone: pause of {pause:g} s after move {moves.count}")
        return
    if _settled(snapshot, memory):
        chosen = (*_to_part(snapshot, memory, limits), *_to_renew(snapshot, memory, limits))
        yield from chosen[:1]


def withheld(snapshot: Snapshot) -> Iterator[Withhold]:
    """Say once that drivers of a changed template cannot be made anywhere."""
    if any(member.outdated and member.fits_nowhere for member in snapshot.members):
        yield Withhold(NO_NODE_FITS)


def _to_part(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Move]:
    for name, node in shared_nodes(snapshot).items():
        chosen = _movable(name, snapshot, memory, limits)
        if chosen is not None and chosen.volume is not None:
            yield Move(chosen.name, chosen.volume, f"{name} would be lost with {node}")


def _to_renew(snapshot: Snapshot, memory: Memory, limits: Limits) -> Iterator[Move]:
    """Outdated drivers that can be made anew, primaries last."""
    primaries = {pair.primary for pair in memory.pairs.values()}
    for member in sorted(snapshot.members, key=lambda member: member.volume in primaries):
        yield from renewal(member, snapshot, limits)


def renewal(member: Member, snapshot: Snapshot, limits: Limits) -> Iterator[Move]:
    """How an outdated driver is made anew, if some node takes it and its twin carries the pair."""
    if not member.outdated or member.fits_nowhere or member.volume is None:
        return
    if may_give_up(member, snapshot, limits):
        yield Move(member.name, member.volume, OUTDATED)


def _shared_node(members: tuple[Member, ...]) -> str | None:
    nodes = [member.node for member in members if member.running and member.node is not None]
    return nodes[0] if len(nodes) > 1 and len(set(nodes)) == 1 else None


def _settled(snapshot: Snapshot, memory: Memory) -> bool:
    """Whether everybody is well and everything exists twice."""
    lead = snapshot.lead
    if lead is None or lead.vulnerable or lead.lost:
        return False
    members = (member for member in snapshot.members if member.kind is not MemberKind.SPARE)
    if any(member.life is not Life.UP or member.silent_since is not None for member in members):
        return False
    return all(_whole(pair, snapshot, memory) for pair in snapshot.pairs())


def _whole(pair: str, snapshot: Snapshot, memory: Memory) -> bool:
    known = memory.pair(pair)
    twins = len(snapshot.replicas_of(pair)) > 1
    return known.stage is Stage.WHOLE and (known.paired or not twins)


def _movable(name: str, snapshot: Snapshot, memory: Memory, limits: Limits) -> Member | None:
    """Who can be placed elsewhere: neither a primary nor the lead, if others can."""
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
            if may_give_up(replica, snapshot, limits)
        ]
    return next((each for each in others if each.hosts_beside(each.node)), None)

"""The status of a pipeline, derived from a snapshot and the controller state."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tandem.policy.controller_state import ControllerState, PairMemory
from tandem.policy.recovery.pairs import PairView, look_at, state_of
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.status.change_status import change_status, history_of
from tandem.policy.status.conditions import Background, conditions_of
from tandem.policy.timeouts import Timeouts
from tandem_core.model.states import (
    ConditionStatus,
    ConditionType,
    MemberKind,
    MemberState,
    PairStanding,
    PairState,
    Phase,
    Role,
)
from tandem_core.model.status import (
    MOST_LOST,
    Condition,
    EpochProgress,
    Lag,
    MemberStatus,
    PairStatus,
    SinkStatus,
    Status,
    ready_text,
)


def status_of(
    snapshot: Snapshot, memory: ControllerState, background: Background, previous: Status
) -> Status:
    """Builds the status.

    Conditions whose status has not changed keep their time of `previous`. Numbers that no member
    reports at the moment keep their previous value; only the lag continues to grow.
    """
    pairs = _pairs(snapshot, memory, background.limits)
    if memory.completed and previous.pairs:
        # Members exit one after the other; the status keeps the pairs from before that.
        pairs = previous.pairs
    states = {pair.name: pair.state for pair in pairs}
    epoch = _epoch(snapshot, pairs, memory, previous)
    change = change_status(snapshot, memory)
    lead = snapshot.lead
    return Status(
        observed_generation=previous.observed_generation,
        phase=_phase(memory, epoch, pairs, background),
        conditions=conditions_of(snapshot, memory, states, background, previous.conditions, change),
        generation=max(previous.generation, lead.generation if lead else 0),
        epoch=epoch,
        lag=_lag(snapshot, memory, epoch, previous.lag),
        pairs=pairs,
        pairs_ready=ready_text(pairs),
        replicas=len(pairs),
        selector=background.selector,
        change=change,
        history=history_of(snapshot.intent),
        lost=tuple(sorted(memory.lost))[:MOST_LOST],
        counters=memory.totals.counters,
        sinks=_sinks(snapshot, previous.sinks),
        members=tuple(
            _member_status(member, snapshot, memory, background.limits)
            for member in snapshot.members
        ),
    )


def with_rows_out(status: Status, rows: int) -> Status:
    """Adds rows that had not been reported yet when a run ended."""
    rows_out = max(status.counters.rows_out, rows)
    return replace(status, counters=replace(status.counters, rows_out=rows_out))


def at_rest(status: Status, at: str) -> Status:
    """Derives the status of a stopped pipeline from its last status while it ran."""
    completed = status.phase is Phase.COMPLETED
    return replace(
        status,
        conditions=tuple(_resting(condition, status.phase, at) for condition in status.conditions),
        pairs=tuple(
            pair if completed else replace(pair, state=PairState.DOWN, ready=False)
            for pair in status.pairs
        ),
        members=tuple(
            replace(member, pid=None, state=MemberState.GONE) for member in status.members
        ),
    )


def _resting(condition: Condition, phase: Phase, at: str) -> Condition:
    """Sets a stopped pipeline to not ready, but keeps the reason for which it ended."""
    told = phase.is_terminal and condition.status is ConditionStatus.FALSE
    if condition.type is not ConditionType.READY or told:
        return condition
    was_so = condition.status is ConditionStatus.FALSE
    return replace(
        condition,
        status=ConditionStatus.FALSE,
        reason="NotRunning",
        message="`tandem run` is not running; start it again to continue",
        last_transition_time=condition.last_transition_time if was_so else at,
    )


def _phase(
    memory: ControllerState,
    epoch: EpochProgress,
    pairs: tuple[PairStatus, ...],
    background: Background,
) -> Phase:
    if memory.completed:
        return Phase.COMPLETED
    if memory.lost:
        return Phase.HALTED
    if background.halted is not None:
        begun = epoch.delivered or any(pair.epoch for pair in pairs)
        return Phase.HALTED if begun else Phase.REFUSED
    if background.suspended:
        return Phase.SUSPENDED
    return Phase.RUNNING if epoch.delivered else Phase.STARTING


def _epoch(
    snapshot: Snapshot, pairs: tuple[PairStatus, ...], memory: ControllerState, previous: Status
) -> EpochProgress:
    lead, before = snapshot.lead, previous.epoch
    delivered = max(before.delivered, lead.delivered if lead else 0)
    cut = max(before.cut, delivered, lead.epoch if lead else 0)
    committed = min((pair.epoch for pair in pairs), default=0)
    return EpochProgress(
        cut=cut,
        committed=max(before.committed, committed),
        delivered=cut if memory.completed else delivered,
    )


def _lag(snapshot: Snapshot, memory: ControllerState, epoch: EpochProgress, before: Lag) -> Lag:
    """How far delivery is behind; while no lead reports, the last known backlog keeps aging."""
    epochs, since = epoch.cut - epoch.delivered, memory.waiting_since
    if snapshot.lead is not None:
        seconds = snapshot.lead.lag_seconds
    elif not epochs:
        seconds = 0.0
    else:
        seconds = before.seconds if since is None else snapshot.now - since
    return Lag(epochs=epochs, seconds=round(seconds, 3))


def _pairs(snapshot: Snapshot, memory: ControllerState, limits: Timeouts) -> tuple[PairStatus, ...]:
    whole = snapshot.whole_pair()
    return tuple(
        _pair_status(look_at(snapshot, name, limits), memory.pair(name), whole)
        for name in snapshot.pairs()
    )


def _pair_status(pair: PairView, memory: PairMemory, whole: PairState) -> PairStatus:
    primary = pair.with_volume(memory.primary) if memory.primary is not None else None
    name = primary.member.name if primary is not None else None
    twin = pair.twin_of(name) if name is not None else None
    state = state_of(pair, memory)
    return PairStatus(
        name=pair.name,
        state=state,
        ready=state is whole,
        primary=name,
        secondary=twin.member.name if twin is not None and twin.there else None,
        epoch=pair.committed,
    )


def _sinks(snapshot: Snapshot, previous: tuple[SinkStatus, ...]) -> tuple[SinkStatus, ...]:
    """Each sink with the smallest position of all slots: epochs up to it are complete.

    The farthest merge of a slot counts. While a slot does not report a sink, the sink keeps its
    previous position.
    """
    merges = snapshot.of_kind(MemberKind.MERGE)
    open_slots = {each.place.slot for each in merges if snapshot.delivers(each.place.slot)}
    told: dict[str, dict[int | None, SinkStatus]] = {}
    for member in merges:
        slot = member.place.slot
        for sink in member.merge.sinks if member.merge is not None else ():
            told.setdefault(sink.name, {})
            known = told[sink.name].get(slot)
            if slot in open_slots and (known is None or known.position < sink.position):
                told[sink.name][slot] = SinkStatus(
                    name=sink.name, delivery=sink.delivery, position=sink.position
                )
    sinks = {sink.name: sink for sink in previous}
    for name, by_slot in told.items():
        if open_slots and by_slot.keys() == open_slots:
            sinks[name] = min(by_slot.values(), key=lambda sink: sink.position)
    return tuple(sinks[name] for name in sorted(sinks))


def _member_status(
    member: MemberSnapshot, snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> MemberStatus:
    return MemberStatus(
        name=member.name,
        kind=member.kind,
        pair=member.place.pair,
        role=_role(member, snapshot, memory),
        standing=_standing(member, snapshot),
        pid=member.pid if member.running else None,
        node=member.node,
        state=_member_state(member, snapshot, memory, limits),
    )


def _standing(member: MemberSnapshot, snapshot: Snapshot) -> PairStanding | None:
    """The standing of a replica's pair, if it is not a current one."""
    standing = snapshot.standing(member.place.pair)
    return None if standing is PairStanding.CURRENT else standing


def _role(member: MemberSnapshot, snapshot: Snapshot, memory: ControllerState) -> Role | None:
    if member.place.pair is None or not snapshot.is_current(member.place.pair):
        return None
    primary = memory.pair(member.place.pair).primary
    if primary is None:
        return None
    return Role.PRIMARY if member.volume == primary else Role.SECONDARY


def _member_state(
    member: MemberSnapshot, snapshot: Snapshot, memory: ControllerState, limits: Timeouts
) -> MemberState:
    if member.life is Life.ENDED:
        return MemberState.GONE
    if member.life is not Life.UP:
        return MemberState.STARTING
    if member.silent_for(snapshot.now) >= limits.unheard:
        return MemberState.SILENT
    if snapshot.standing(member.place.pair) is PairStanding.SHADOW:
        return _shadow_state(member, snapshot)
    return _STATE_BY_KIND[member.kind](member, memory)


def _split_state(_member: MemberSnapshot, _memory: ControllerState) -> MemberState:
    return MemberState.RUNNING


def _merge_state(member: MemberSnapshot, _memory: ControllerState) -> MemberState:
    active = member.merge is not None and member.merge.active
    return MemberState.RUNNING if active else MemberState.STANDBY


def _spare_state(member: MemberSnapshot, _memory: ControllerState) -> MemberState:
    return MemberState.STANDBY if member.warm else MemberState.STARTING


def _replica_state(member: MemberSnapshot, memory: ControllerState) -> MemberState:
    if member.replica is None or not member.warm:
        return MemberState.STARTING
    pair = memory.pair(member.place.pair or "")
    behind = not pair.paired and pair.primary is not None and member.volume != pair.primary
    whole = member.replica.verified and not behind
    return MemberState.RUNNING if whole else MemberState.CATCHING_UP


def _shadow_state(member: MemberSnapshot, snapshot: Snapshot) -> MemberState:
    if not member.warm:
        return MemberState.STARTING
    seat = snapshot.seat(member.volume)
    is_level = seat is not None and seat.synced
    return MemberState.RUNNING if is_level else MemberState.CATCHING_UP


_STATE_BY_KIND: Mapping[MemberKind, Callable[[MemberSnapshot, ControllerState], MemberState]] = {
    MemberKind.SPLIT: _split_state,
    MemberKind.REPLICA: _replica_state,
    MemberKind.MERGE: _merge_state,
    MemberKind.SPARE: _spare_state,
}

"""Derives the states of members from their pods and the lead's report."""

from collections.abc import Iterable, Mapping
from typing import Any

from tandem.control.pods import Pod
from tandem.remote.targets import role_of
from tandem_core.contract.reports import LeadReport
from tandem_core.contract.volume_ids import pod_volume
from tandem_core.model.states import (
    ChangeStage,
    MemberKind,
    MemberState,
    PairStanding,
    PairState,
    Role,
)
from tandem_core.model.status import MemberStatus, Status

_JOINING = {
    None: MemberState.STARTING,
    PairState.STARTING: MemberState.STARTING,
    PairState.CATCHING_UP: MemberState.CATCHING_UP,
}
"""The state of an unready replica, by the state of its pair. In any other state of the pair no
replica is joining, so an unready one is silent."""


_STANDINGS: Mapping[ChangeStage | None, PairStanding] = {
    ChangeStage.BUILDING: PairStanding.SHADOW,
    ChangeStage.SYNCED: PairStanding.SHADOW,
    ChangeStage.CUTTING: PairStanding.SHADOW,
    ChangeStage.RETIRING: PairStanding.MUTED,
}


def members_of(
    pods: Iterable[Pod], status: Status, word: LeadReport | None
) -> tuple[MemberStatus, ...]:
    """Return the pods as members; `word` is the lead's report, if it could be read."""
    pairs = {pair.name: pair.state for pair in status.pairs}
    active = active_merges(word)
    return tuple(
        MemberStatus(
            name=pod.name,
            kind=pod.place.kind,
            pair=pod.place.pair,
            role=role_of(pod),
            standing=standing_of(pod, status),
            node=pod.node,
            state=state_of(pod, pairs.get(pod.place.pair or ""), active),
        )
        for pod in pods
    )


def standing_of(pod: Pod, status: Status) -> PairStanding | None:
    """Return the standing of a replica's pair, unless the status lists it as a current one."""
    pair, change = pod.place.pair, status.change
    if pair is None or not status.pairs or any(pair == each.name for each in status.pairs):
        return None
    return _STANDINGS.get(change.stage if change is not None else None, PairStanding.GONE)


def active_merges(word: LeadReport | None) -> frozenset[str] | None:
    """Return the pod uids of the merges that deliver; None if they are unknown."""
    if word is None:
        return None
    volumes = (pod_volume(merge.volume) for merge in word.merges)
    return frozenset(volume.pod for volume in volumes if volume is not None)


def epochs_of(pods: Iterable[Pod], word: LeadReport | None) -> dict[str, int]:
    """Return the last epoch that each replica committed, and that active merges delivered."""
    if word is None:
        return {}
    committed = {
        volume.pod: seat.committed
        for pair in word.pairs
        for seat in pair.seats
        if (volume := pod_volume(seat.volume)) is not None
    }
    delivered = dict.fromkeys(active_merges(word) or (), word.delivered)
    known = committed | delivered
    return {pod.name: known[pod.uid] for pod in pods if pod.uid in known}


def state_of(pod: Pod, pair: PairState | None, active: frozenset[str] | None) -> MemberState:
    """Return the state of a pod. `pair` is its pair's state, `active` the merges that deliver."""
    container = _container(pod)
    state, before = container.get("state") or {}, container.get("lastState") or {}
    if pod.over or "terminated" in state:
        return MemberState.GONE
    if "running" not in state:
        return MemberState.GONE if "terminated" in before else MemberState.STARTING
    if not container.get("started"):
        return MemberState.STARTING
    ready = _ready(pod)
    if ready.get("status") != "True":
        began = str(state["running"].get("startedAt", ""))
        return _unready(pod, pair, was_ready=str(ready.get("lastTransitionTime", "")) > began)
    return _well(pod, pair, active)


def _unready(pod: Pod, pair: PairState | None, *, was_ready: bool) -> MemberState:
    if pod.place.kind is MemberKind.REPLICA:
        return _JOINING.get(pair, MemberState.SILENT)
    return MemberState.SILENT if was_ready else MemberState.STARTING


def _well(pod: Pod, pair: PairState | None, active: frozenset[str] | None) -> MemberState:
    kind = pod.place.kind
    if kind is MemberKind.SPARE:
        return MemberState.STANDBY
    if kind is MemberKind.MERGE and active is not None and pod.uid not in active:
        return MemberState.STANDBY
    behind = pair is PairState.CATCHING_UP and role_of(pod) is not Role.PRIMARY
    return MemberState.CATCHING_UP if behind else MemberState.RUNNING


def _container(pod: Pod) -> Mapping[str, Any]:
    name = pod.document["spec"]["containers"][0]["name"]
    statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
    return next((each for each in statuses if each.get("name") == name), {})


def _ready(pod: Pod) -> Mapping[str, Any]:
    conditions = (pod.document.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "Ready"), {})

"""What a status shows of changes: the one under way, the last ones, and how far it is."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from tandem.policy.change.generations import target_generation
from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.processes import describe_exit
from tandem.policy.recovery.shadows import build_obstacles
from tandem.policy.snapshot import Life, Snapshot
from tandem_core.contract.intent import GenerationChange, Intent, PastChange
from tandem_core.model.change import MOST_REASON, ChangeStatus, PastChangeStatus
from tandem_core.model.states import ChangeStage, MemberKind
from tandem_core.model.status import MOST_HISTORY


class ChangeView(NamedTuple):
    """What a condition says of a change."""

    holds: bool
    reason: str
    message: str


def change_status(snapshot: Snapshot, memory: ControllerState) -> ChangeStatus | None:
    """The change of pairs under way, or the last one if it was abandoned."""
    change = snapshot.intent.change if snapshot.intent is not None else None
    if change is None:
        return None
    progress = _progress(snapshot, change)
    # While pairs are built, the recorded reason is the progress as it was when it was recorded.
    waits = () if change.stage in _COUNTED else (change.reason,)
    return ChangeStatus(
        target=change.generation,
        stage=change.stage,
        reason=_cut("; ".join((*filter(None, waits), *_hindrances(snapshot, memory)))),
        progress=progress,
        since=_time(change.since_ms),
    )


def history_of(intent: Intent | None) -> tuple[PastChangeStatus, ...]:
    """The changes that have ended, the newest first."""
    past = intent.history if intent is not None else ()
    return tuple(map(_past, past[:MOST_HISTORY]))


def rebalancing(snapshot: Snapshot, change: ChangeStatus | None) -> ChangeView:
    """Whether a new generation is being built or cut over."""
    if change is None or change.stage not in _BUILT:
        return ChangeView(False, "NoChange", "no generation is being built or cut over")
    there = snapshot.standings
    now = f" beside generation {there.generation}" if there and there.shadows else ""
    what = f"generation {change.target}{now}"
    return ChangeView(True, change.stage.value, _sentence(what, change))


def progressing(snapshot: Snapshot, change: ChangeStatus | None) -> ChangeView:
    """Whether what runs is not yet what the manifest asks for."""
    if change is not None and change.stage is ChangeStage.ABANDONED:
        what = f"the change of pairs was given up: {change.reason}; {_going_on_with(snapshot)}"
        return ChangeView(False, "ChangeAbandoned", what)
    if change is not None:
        return ChangeView(True, change.stage.value, _sentence("the change of pairs", change))
    counts = tuple(_changing_counts(snapshot))
    if counts:
        return ChangeView(True, "CountsChanging", "; ".join(counts))
    return ChangeView(False, "AsDeclared", "no change is under way")


_COUNTED = frozenset({ChangeStage.BUILDING, ChangeStage.SYNCED})
_BUILT = frozenset(
    {ChangeStage.BUILDING, ChangeStage.SYNCED, ChangeStage.CUTTING, ChangeStage.RETIRING}
)


def _sentence(what: str, change: ChangeStatus) -> str:
    details = (change.stage.meaning, change.progress, change.reason)
    return f"{what}: {'; '.join(filter(None, details))}"


def _going_on_with(snapshot: Snapshot) -> str:
    """Which pairs stay: steps that were finished are not undone."""
    count = len(target_generation(snapshot.intent).pairs) if snapshot.intent is not None else 0
    pairs = "pair" if count == 1 else f"{count} pairs"
    return f"the pipeline continues with the {pairs} that it has now"


def _changing_counts(snapshot: Snapshot) -> Iterator[str]:
    """Splits that come or leave, and merge slots that begin or end.

    A pod that cannot start, and a place without one, are no splits yet.
    """
    intent, lead = snapshot.intent, snapshot.lead
    splits = sum(each.life is Life.UP for each in snapshot.of_kind(MemberKind.SPLIT))
    if intent is not None and splits < intent.splits:
        yield f"{splits} of {intent.splits} splits run"
    elif intent is not None and 0 < intent.splits < splits:
        yield f"{splits} splits run, {intent.splits} are wanted"
    slots = len(lead.open_slots) if lead is not None else 0
    if intent is not None and slots and slots != intent.slots:
        yield f"{slots} merge slots deliver, {intent.slots} wanted"


def _progress(snapshot: Snapshot, change: GenerationChange) -> str:
    """How far a change is, as far as it can be counted."""
    intent, standings = snapshot.intent, snapshot.standings
    if intent is None or standings is None or snapshot.lead is None:
        return ""
    if change.stage in _COUNTED:
        seats = (seat for pair in standings.shadows for seat in snapshot.lead.seats_of(pair))
        synced = sum(seat.full and seat.synced and not seat.silent for seat in seats)
        return f"{synced} of {len(standings.shadows) * intent.replicas} replicas synced"
    if change.stage is ChangeStage.RETIRING:
        older = {name for each in intent.generations for name in each.names()}
        replaced = older.difference(standings.current)
        left = len(replaced) - len(standings.muted)
        return f"{left} of {len(replaced)} replaced pairs retired"
    return ""


def _hindrances(snapshot: Snapshot, memory: ControllerState) -> Iterator[str]:
    """Members of pairs that are not current and have failed, and why others cannot start."""
    yield from build_obstacles(snapshot).values()
    for member in snapshot.members:
        if snapshot.is_current(member.place.pair) or member.leaving:
            continue
        if member.life is Life.ENDED:
            row = memory.crashes.get(member.name)
            times = f", {row.count} times in a row" if row is not None and row.count > 1 else ""
            yield f"{member.name} {describe_exit(member)}{times}"


def _past(change: PastChange) -> PastChangeStatus:
    return PastChangeStatus(
        generation=change.generation,
        pairs_before=change.pairs_before,
        pairs_after=change.pairs_after,
        began=_time(change.began_ms),
        ended=_time(change.ended_ms),
        moved_keys=len(change.moves),
        abandoned=_cut(change.abandoned),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 1]}…"


def _time(milliseconds: int) -> str:
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"

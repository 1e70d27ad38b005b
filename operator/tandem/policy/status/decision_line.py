"""The line that a reconcile leaves in the log: what was observed, what was decided, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.processes import describe_exit
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.status.steps import Action, Step

_SEPARATOR = "; "


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """What one reconcile of a pipeline observed and decided."""

    pipeline: str
    observed: str
    steps: tuple[Step, ...] = ()

    @property
    def decision(self) -> str:
        """All steps, in the order in which they were taken."""
        return _SEPARATOR.join(step.text for step in self.steps)

    @property
    def reason(self) -> str:
        """The reasons of the steps in their order, each once, also if an event repeats it."""
        told = [step for step in self.steps if not self._is_repeated(step)]
        return _SEPARATOR.join(dict.fromkeys(step.reason for step in told))

    def _is_repeated(self, step: Step) -> bool:
        """Whether an event about the same members or pairs contains a step's reason."""
        return step.action is not Action.RECORD and any(
            step.reason in event.reason and set(step.about) & set(event.about)
            for event in self.steps
            if event.action is Action.RECORD
        )

    def fields(self) -> Mapping[str, str]:
        """The fields of the log line, by name."""
        return {
            "pipeline": self.pipeline,
            "observed": self.observed,
            "decision": self.decision,
            "reason": self.reason,
        }

    def and_then(self, step: Step) -> Self:
        """The line with one more step."""
        return replace(self, steps=(*self.steps, step))


def observed_by(snapshot: Snapshot, memory: ControllerState, steps: Iterable[Step]) -> str:
    """Describes the pairs and members that steps affect, and all unhealthy members.

    Members of pairs that are not current are named only if a step affects them. Roles are those
    from before the steps were decided.
    """
    about = {name for step in steps for name in step.about}
    counted = [m for m in snapshot.members if snapshot.is_current(m.place.pair)]
    named = {m.name for m in snapshot.members if m.name in about}
    named.update(m.name for m in counted if not _is_well(m))
    pairs = [
        pair
        for pair in snapshot.all_pairs()
        if pair in about or any(m.name in named for m in snapshot.replicas_of(pair))
    ]
    parts = [_pair(snapshot, pair, memory.pair(pair).primary) for pair in pairs]
    others = [m for m in snapshot.members if m.place.pair is None and m.name in named]
    parts += _others(others, snapshot.now)
    return _SEPARATOR.join(parts) or f"{len(counted)} members running"


def _is_well(member: MemberSnapshot) -> bool:
    return member.life is Life.UP and member.silent_since is None and member.complaint is None


def _pair(snapshot: Snapshot, name: str, primary: str | None) -> str:
    replicas = (
        f"{'primary ' if m.volume is not None and m.volume == primary else ''}"
        f"{m.name} {_state(m, snapshot.now)}"
        for m in snapshot.replicas_of(name)
    )
    standing = "" if snapshot.is_current(name) else f"{snapshot.standing(name)} "
    return f"{standing}{name}: {', '.join(replicas)}"


def _others(members: Iterable[MemberSnapshot], now: float) -> list[str]:
    """Members that belong to no pair, those in the same state together."""
    names: dict[str, list[str]] = {}
    for member in members:
        names.setdefault(_state(member, now), []).append(member.name)
    return [f"{', '.join(some)} {state}" for state, some in names.items()]


def _state(member: MemberSnapshot, now: float) -> str:
    state = _life(member, now)
    if not member.volume_there:
        state = f"{state}, volume gone"
    return f"{state} ({member.note})" if member.note else state


def _life(member: MemberSnapshot, now: float) -> str:
    if member.life is Life.ENDED:
        return describe_exit(member)
    if member.life is Life.UP and member.silent_since is not None:
        return f"silent for {member.silent_for(now):.1f} s"
    if member.life is Life.UP:
        return member.replica.state if member.replica is not None else "running"
    return str(member.life)

"""Whom a fault hits, among all who are there at that moment, old and new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.laptop.harness import Run
from tests.soak.plan import Target

Document = dict[str, Any]

ASIDE = frozenset({"shadow", "muted"})
"""Standings of pairs that are built, or that are replaced and not retired yet."""


def who_is(run: Run, target: Target, index: int = 0) -> str | None:
    """The member that a target means at the moment; None if nobody is that."""
    found = [each for kind in ("split", "replica", "merge") for each in run.members(kind)]
    return choose(target, index, found, run.lead())


def choose(target: Target, index: int, members: Sequence[Document], lead: str | None) -> str | None:
    """The member that a target means: of all that it may mean, the one with this index, modulo."""
    match target:
        case Target.PRIMARY | Target.SECONDARY:
            return _replica(target, index, [each for each in members if each["kind"] == "replica"])
        case Target.LEAD:
            return lead
        case Target.FOLLOWER:
            splits = _names(each for each in members if each["kind"] == "split")
            # There may be no other one.
            return _pick([name for name in splits if lead and name != lead], index) or lead
        case Target.ACTIVE | Target.STANDBY:
            merges = [each for each in members if each["kind"] == "merge"]
            is_active = target is Target.ACTIVE
            # One that starts is no active merge either.
            return _pick(_names(e for e in merges if (e["state"] == "Running") is is_active), index)
        case Target.SUPERVISOR:
            return None


def standing_of(run: Run, name: str) -> str:
    """The standing of a member's pair if it is not current; else nothing."""
    found = (each for each in run.members("replica") if each["name"] == name)
    return str(next(found, {}).get("standing") or "")


def _replica(target: Target, index: int, replicas: Sequence[Document]) -> str | None:
    """The replica of a pair, of an old or a new one; a new one may have no roles yet."""
    pair = _pick(sorted({str(each["pair"]) for each in replicas}), index)
    own = [each for each in replicas if each["pair"] == pair]
    by_role = [each for each in own if each.get("role") == target.value]
    place = 0 if target is Target.PRIMARY else -1
    return str((by_role or own)[place]["name"]) if own else None


def _names(members: Iterable[Document]) -> list[str]:
    return sorted(str(each["name"]) for each in members)


def _pick(names: Sequence[str], index: int) -> str | None:
    return names[index % len(names)] if names else None

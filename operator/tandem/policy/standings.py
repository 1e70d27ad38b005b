"""Which pairs count while a change runs: current ones, shadows, muted ones.

A pair is current if the generation of the last header lists it. The operator learns of that from
the lead, so a pair that has just taken over may count as a shadow for a moment.
"""

from dataclasses import dataclass
from typing import Self

from tandem_core.contract.intent import Generation, Intent
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import ChangeStage, PairStanding


@dataclass(frozen=True, slots=True)
class Standings:
    """The pairs of an intent by their standing, each once. All others are gone."""

    generation: int
    """The generation whose pairs are current."""
    current: tuple[str, ...]
    shadows: tuple[str, ...] = ()
    muted: tuple[str, ...] = ()

    @classmethod
    def judged(cls, intent: Intent, lead: LeadReport | None) -> Self:
        """Judges by the intent, and by the lead's report if there is a recent one."""
        now = _current(intent, lead)
        current = now.names()
        newer = [each for each in intent.generations if each.number > now.number]
        older = [each for each in intent.generations if each.number < now.number]
        # The way back from a change names the pairs before it once more.
        before = set(_names(older))
        shadows = tuple(name for name in _names(newer) if name not in {*current, *before})
        muted = (name for name in _names(older) if name not in current)
        return cls(
            now.number, current, shadows, tuple(name for name in muted if _is_listed(name, lead))
        )

    def of(self, pair: str) -> PairStanding:
        """The standing of a pair."""
        if pair in self.current:
            return PairStanding.CURRENT
        if pair in self.shadows:
            return PairStanding.SHADOW
        return PairStanding.MUTED if pair in self.muted else PairStanding.GONE


def _current(intent: Intent, lead: LeadReport | None) -> Generation:
    """The generation of the last header; while no lead says it, the one that it must be."""
    by_number = {each.number: each for each in intent.generations}
    if lead is not None and lead.generation in by_number:
        return by_number[lead.generation]
    before = max((number for number in by_number if number < intent.target), default=None)
    is_cutting = intent.change is not None and intent.change.stage is ChangeStage.CUTTING
    if lead is None and before is not None and is_cutting:
        return by_number[before]
    return by_number[intent.target]


def _names(generations: list[Generation]) -> tuple[str, ...]:
    names = (name for generation in generations for name in generation.names())
    return tuple(dict.fromkeys(names))


def _is_listed(pair: str, lead: LeadReport | None) -> bool:
    """Whether the lead may still count on a pair: it has not retired it."""
    return lead is None or any(known.name == pair for known in lead.pairs)

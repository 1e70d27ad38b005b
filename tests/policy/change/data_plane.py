"""A data plane in a few lines: it follows an intent as the lead does, at any pace."""

from __future__ import annotations

from dataclasses import dataclass, field

from tandem.policy.change.codec import RoutingCodec
from tandem.policy.change.intent_step import IntentStep
from tandem.policy.change.steps import next_intent
from tandem.policy.change.wanted import Evidence, Wanted
from tandem_core.contract.intent import Generation, Intent, Pair
from tandem_core.contract.intent_text import intent_text, read_intent_text
from tandem_core.contract.reports import LeadReport, PairReport, SeatReport
from tandem_core.model.states import SeatState
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of, from_bytes, to_bytes

SECOND = 1000


def first(pairs: int, splits: int = 2, slots: int = 1) -> tuple[Intent, dict[str, RoutingFunction]]:
    """An intent with this many pairs, and its routing function."""
    names = [f"pair-{n}" for n in range(pairs)]
    function = RoutingFunction.plain(names)
    generation = Generation(
        1,
        digest_of(function),
        tuple(Pair(name, name, (), function.share_of(name).identity, 1) for name in names),
    )
    intent = Intent(
        1, (generation,), 1, (), slots, next_pair=pairs, next_generation=2, splits=splits
    )
    return intent, {generation.function: function}


@dataclass
class DataPlane:
    """Pairs as the lead reports them; a test says what happens next."""

    intent: Intent
    functions: dict[str, RoutingFunction]
    cut: int = 1
    synced: dict[str, int] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)
    obstacles: dict[str, str] = field(default_factory=dict)
    now_ms: int = 0
    has_lead: bool = True

    def __post_init__(self) -> None:
        self.synced = dict.fromkeys(self.intent.generations[0].names(), 2)

    def lead(self) -> LeadReport | None:
        """The lead's report."""
        if not self.has_lead:
            return None
        known = [name for each in self.intent.generations for name in each.names()]
        pairs = [name for name in dict.fromkeys([*self.synced, *known]) if name not in self.retired]
        return LeadReport(
            term=1,
            generation=self.cut,
            pairs=tuple(PairReport(name, self._seats(name)) for name in pairs),
        )

    def _seats(self, name: str) -> tuple[SeatReport, ...]:
        count = self.synced.get(name, 0)
        return tuple(
            SeatReport(f"{name}-{n}", SeatState.VERIFIED, synced=True) for n in range(count)
        )

    def turn(self, wanted: Wanted) -> IntentStep | None:
        """Let the policy make a step, as an operator that has just started."""
        self.now_ms += SECOND
        evidence = Evidence(self.lead(), dict(self.failures), dict(self.obstacles))
        codec = RoutingCodec(self.functions.__getitem__)
        step = next_intent(self.intent, wanted, evidence, codec, self.now_ms)
        if step is not None:
            for each in step.functions:
                self.functions[each.digest] = from_bytes(each.form)
            assert step.intent.version > self.intent.version
            self.intent = read_intent_text(intent_text(step.intent))
        return step

    def work(self) -> None:
        """Sync all new pairs; follow the target; retire what only older generations have."""
        target = next(g for g in self.intent.generations if g.number == self.intent.target)
        self.cut = max(self.cut, target.number)
        for generation in self.intent.generations:
            for name in generation.names():
                self.synced.setdefault(name, 2)
        if target.number == self.cut:
            newest = [g for g in self.intent.generations if g.number >= self.cut]
            kept = {name for g in newest for name in g.names()}
            self.retired |= set(self.synced) - kept
            self.synced = {name: n for name, n in self.synced.items() if name in kept}

    def until_idle(self, wanted: Wanted, most: int = 200) -> list[IntentStep]:
        """Turn until nothing is left to do; return all steps."""
        steps, idle = [], 0
        for _ in range(most):
            step = self.turn(wanted)
            idle = idle + 1 if step is None else 0
            if step is not None:
                steps.append(step)
            if idle > 2:
                return steps
            self.work()
        raise AssertionError(f"still changing after {most} turns: {self.intent.change}")

    @property
    def pairs(self) -> tuple[str, ...]:
        """The pairs of the target."""
        return next(g.names() for g in self.intent.generations if g.number == self.intent.target)


def size_of(functions: dict[str, RoutingFunction]) -> int:
    """The bytes of all routing functions."""
    return sum(len(to_bytes(function)) for function in functions.values())

"""Accounts for changes: what the operator writes into the intent, and which workloads it removes.

It follows the intents as they are written, and the header log's records of seats; the policy that
decides the changes is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tandem_core.contract.intent import Generation, Intent, Pair
from tandem_simulator.externals.shares import MOST_KEYS, keys_of
from tandem_simulator.oracle.violation import broken

OPERATOR = "operator"


class ChangeAccount:
    """Every generation and pair that was ever written, and the target at present."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.generations: dict[int, Generation] = {}
        self.pairs: dict[str, Pair] = {}
        self.intent: Intent | None = None
        self.current: set[str] = set()
        """Pairs of every generation that has been the target: their state is not built anew."""

    def written(self, intent: Intent, listed: Collection[str]) -> None:
        """Check an intent; `listed` are the pairs that have seats in the header log."""
        before = self.intent
        if before is not None:
            self._check_version(before, intent)
            self._check_forgotten(before, intent, listed)
            self._check_history(before, intent)
        for generation in intent.generations:
            if self.generations.get(generation.number) != generation:
                self._check_new(generation)
                self._check_keys(generation)
                self.generations[generation.number] = generation
        self.current.update(self.generations[intent.target].names())
        self.intent = intent

    def removed(self, pair: str, listed: Iterable[str]) -> None:
        """Check that a workload that goes is not of a pair that the log still counts on."""
        if pair in self.current and pair in set(listed):
            broken(
                8,
                "removed-early",
                f"the pods of {pair}, which is not retired, go",
                OPERATOR,
                0,
                pair,
            )

    def _check_version(self, before: Intent, intent: Intent) -> None:
        if intent.version <= before.version or intent.target < before.target:
            broken(
                7,
                "intent-fell",
                f"intent {before.version} has target {before.target}, "
                f"intent {intent.version} has {intent.target}",
                OPERATOR,
            )

    def _check_forgotten(self, before: Intent, intent: Intent, listed: Collection[str]) -> None:
        """Check that a generation leaves the intent before it was the target, or is retired."""
        kept = {name for each in intent.generations for name in each.names()}
        for generation in before.generations:
            if generation.number > before.target:
                continue
            for pair in generation.names():
                if pair not in kept and pair in listed:
                    broken(
                        8,
                        "forgotten-early",
                        f"intent {intent.version} lacks {pair}, which is not retired",
                        OPERATOR,
                        subject=pair,
                    )

    def _check_history(self, before: Intent, intent: Intent) -> None:
        """Check that every generation that is given up has its reason in the history."""
        building = [g.number for g in before.generations if g.number > before.target]
        kept = {generation.number for generation in intent.generations}
        for number in building:
            past = next((each for each in intent.history if each.generation == number), None)
            if number not in kept and (past is None or not past.abandoned):
                broken(
                    0,
                    "abandoned-without-reason",
                    f"generation {number} is given up; the history has {past}",
                    OPERATOR,
                )

    def _check_new(self, generation: Generation) -> None:
        """Check that numbers and names are new, and that pairs carried over keep their keys."""
        if generation.number <= max(self.generations, default=0):
            self._used_twice(f"generation {generation.number}", str(generation))
        for pair in generation.pairs:
            known = self.pairs.get(pair.name)
            if known is None:
                self.pairs[pair.name] = pair
            elif pair.parents or known.label != pair.label or known.birth != pair.birth:
                self._used_twice(pair.name, f"{known} is {pair}")

    def _used_twice(self, subject: str, what: str) -> None:
        broken(2, "name-twice", f"{subject} is used again: {what}", OPERATOR, subject=subject)

    def _check_keys(self, generation: Generation) -> None:
        """Check that every key has exactly one owner."""
        owned = Counter(
            key for pair in generation.pairs for key in keys_of(pair.label, self.buckets)
        )
        wrong = {key: owned[key] for key in range(MOST_KEYS) if owned[key] != 1}
        if wrong:
            broken(
                2,
                "keys-divided",
                f"generation {generation.number} has so many owners of keys: {wrong}",
                OPERATOR,
            )

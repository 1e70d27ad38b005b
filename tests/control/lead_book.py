"""What a lead knows of generations and merge slots, and what it makes of an intent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tandem_core.contract.intent import Intent


@dataclass
class LeadBook:
    """Outlives leads: it is in the header log."""

    uid: str = ""
    """Of the intent; another pipeline has another one."""
    generation: int = 0
    """The generation that headers name."""
    current: tuple[str, ...] = ()
    """Its pairs."""
    pairs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The pairs that the lead lists, with their parents."""
    open_slots: list[int] = field(default_factory=list)
    ending_slots: list[int] = field(default_factory=list)
    next_slot: int = 0

    def take_intent(self, intent: Intent, holders: Mapping[str, int]) -> None:
        """Know new pairs, cut, retire and give up, as far as intent and replicas allow.

        `holders` are the numbers of replicas that hold the state of a pair.
        """
        for generation in intent.generations:
            for pair in generation.pairs:
                if generation.number >= self.generation:
                    self.pairs.setdefault(pair.name, pair.parents)
        target = next(each for each in intent.generations if each.number == intent.target)
        # Twins must have committed an epoch of their generation before others are retired.
        replaced = all(holders.get(name, 0) >= intent.replicas for name in self.current)
        if self.generation < target.number and all(holders.get(n) for n in target.names()):
            self.generation, self.current, replaced = target.number, target.names(), False
        coming = {n for g in intent.generations if g.number > self.generation for n in g.names()}
        known = {name for generation in intent.generations for name in generation.names()}
        self.pairs = {
            name: parents
            for name, parents in self.pairs.items()
            if name in self.current or name in coming or (name in known and not replaced)
        }

    def take_slots(self, intent: Intent, merges: set[int]) -> None:
        """Open slots for which there is a merge, end the highest ones, seal what has ended."""
        if not self.next_slot:
            self.open_slots, self.next_slot = list(range(intent.slots)), intent.slots
        self.ending_slots = self.open_slots[intent.slots :]
        self.open_slots = self.open_slots[: intent.slots]
        fresh = sorted(slot for slot in merges if slot >= self.next_slot)
        for slot in fresh[: intent.slots - len(self.open_slots)]:
            self.open_slots.append(slot)
            self.next_slot = slot + 1

"""Simulates an operator, the only writer of the intent, which may change plans or be absent.

It builds new generations beside the old one, makes one the target once the lead's summary reports
it synced, abandons one that takes too long or at random, and removes retired pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

from tandem.policy.layout.layout import (
    Layout,
    LayoutChange,
    move_buckets,
    reassign,
    unite_pairs,
)
from tandem.policy.layout.resize import next_step
from tandem_core.contract.intent import Generation, Intent
from tandem_runtime.protocol.messages.peers import NewIntent
from tandem_runtime.protocol.split.split_machine import SplitMachine
from tandem_simulator.engine.process import SPLIT, SimulatedProcess
from tandem_simulator.engine.trace import TURN
from tandem_simulator.externals.shares import FUNCTION, buckets_of, generation_of, new_pairs

if TYPE_CHECKING:
    from tandem_runtime.protocol.lead.summary import Summary
    from tandem_simulator.engine.world import World


ROUND = 300
"""Milliseconds between two rounds."""
MOST_PAIRS = 5
"""Highest number of pairs that a resize asks for."""
PATIENCE = 4500
"""Longest time for building a new generation, in milliseconds."""


class SimulatedOperator:
    """Observes, decides, records and acts; rows flow without it."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        configuration = world.configuration
        first = generation_of(1, configuration.pairs)
        world.ledger.generation_made(first)
        self.layout = Layout(configuration.pairs, len(configuration.pairs))
        self.newest = 1
        self.intents = [Intent(1, (first,), 1, configuration.streams, configuration.slots)]
        self.building: Generation | None = None
        self.begun = 0
        self.fickle = False
        self.changes = list(configuration.changes)
        self.resizes = list(configuration.resizes)
        self.away_until = 0
        self.stale: dict[str, int] = {}
        """Volumes whose watch of the intent is stuck, and until when."""
        self.seen: Summary | None = None

    @property
    def intent(self) -> Intent:
        """The newest intent."""
        return self.intents[-1]

    # --- the intent reaches the splits --------------------------------------------------------

    def welcome(self, process: SimulatedProcess) -> None:
        """Send the intent to a new split, sometimes an older one first."""
        if len(self.intents) > 1 and self.rng.random() < 0.3:  # noqa: PLR2004
            old = self.rng.choice(self.intents[:-1])
            self._tell(process, old, self.rng.randint(1, 100))
            self._tell_newest_later(process, self.rng.randint(200, 2500))
        else:
            self._tell_newest_later(process, self.rng.randint(1, 150))

    def _tell(self, process: SimulatedProcess, intent: Intent, delay: int) -> None:
        self.world.after(delay, self.world.tell, process, None, NewIntent(intent))

    def _tell_newest_later(self, process: SimulatedProcess, delay: int) -> None:
        self.world.after(delay, self._tell_newest, process)

    def _tell_newest(self, process: SimulatedProcess, _b: object = None, _c: object = None) -> None:
        until = self.stale.get(process.volume, 0)
        if until > self.world.now:
            self._tell_newest_later(process, until - self.world.now + 50)
            return
        withheld = self.rng.random() < 0.2  # noqa: PLR2004
        functions = () if withheld else (FUNCTION,)
        self.world.tell(process, None, NewIntent(self.intent, functions))
        if withheld:
            # Until then the split has to ask the lead for the routing function.
            self._tell_newest_later(process, self.rng.randint(100, 1500))

    def _publish(self, intent: Intent, why: str) -> None:
        world = self.world
        self.intents.append(intent)
        if world.trace is not None:
            world.trace.note(world.now, "operator", f"intent {intent.version}: {why}", TURN)
        for process in world.cluster.running(SPLIT):
            self._tell_newest_later(process, self.rng.randint(5, 500))
            if self.rng.random() < 0.2:  # noqa: PLR2004
                self._tell(process, self.rng.choice(self.intents), self.rng.randint(100, 3000))
        for process in world.cluster.zombies:
            if process.kind == SPLIT:
                self._tell_newest_later(process, self.rng.randint(5, 500))

    # --- rounds -------------------------------------------------------------------------------

    def go_away(self, until: int) -> None:
        """Stop observing and deciding until then."""
        self.away_until = max(self.away_until, until)

    def round(self, _a: object = None, _b: object = None, _c: object = None) -> None:
        """Act on the observations of the last round, then observe again."""
        if self.world.now >= self.away_until:
            if self.building is None:
                self._perhaps_change()
            else:
                self._pursue(self.building)
            self._perhaps_resize()
            self._tidy()
            self.seen = self._look()
        self.world.after(ROUND - 50 + self.rng.randint(0, 100), self.round)

    def _look(self) -> Summary | None:
        world = self.world
        lead = world.by_volume.get(world.place.lead)
        if lead is None or lead.halted or not isinstance(lead.machine, SplitMachine):
            return None
        if lead.volume in world.network.mute or lead.volume in world.register_cut:
            return None
        return lead.machine.summary(lead.local(world.now))

    def _perhaps_change(self) -> None:
        world = self.world
        if not self.changes or world.now < self.changes[0]:
            return
        seen = self.seen
        if seen is None or seen.generation != self.intent.target or seen.completed:
            return
        if {pair.name for pair in seen.pairs} - set(self.layout.names()):
            return  # The pairs of the last change have not retired yet.
        self.changes.pop(0)
        change = self._plan()
        # The name of an abandoned pair is not used again.
        self.layout = Layout(self.layout.pairs, change.after.next_pair)
        self.newest += 1
        self.building = generation_of(self.newest, change.after.pairs, change.parents)
        self.begun = world.now
        self.fickle = self.rng.random() < 0.2  # noqa: PLR2004
        world.ledger.generation_made(self.building)
        intent = self.intent
        kept = tuple(g for g in intent.generations if g.number >= intent.target)
        names = ", ".join(f"{new} from {'+'.join(old)}" for new, old in change.parents.items())
        self._publish(
            intent.replace(version=intent.version + 1, generations=(*kept, self.building)),
            f"build generation {self.newest}: {names}",
        )
        for name in change.parents:
            world.cluster.add_pair(name, change.after.buckets_of(name))
        world.occur("GenerationPlanned", None)

    def _plan(self) -> LayoutChange:
        """Take the policy's next step to another number of pairs, move buckets, or deal at random.

        The policy follows load; random deals reach layouts that it would never choose.
        """
        kind = self.rng.choice(("resize", "resize", "unite", "move", "deal"))
        planned = self._resize() if kind == "resize" else None
        if planned is None and len(self.layout.pairs) > 1:
            planned = self._unite() if kind == "unite" else self._move() if kind == "move" else None
        return planned or self._deal_anything()

    def _resize(self) -> LayoutChange | None:
        loads = {bucket: self.rng.random() for _, mine in self.layout.pairs for bucket in mine}
        wanted, surge = self.rng.randint(1, MOST_PAIRS), self.rng.randint(2, 3)
        return next_step(self.layout, wanted, loads.__getitem__, surge)

    def _unite(self) -> LayoutChange:
        return unite_pairs(self.layout, self.rng.sample(self.layout.names(), 2))

    def _move(self) -> LayoutChange | None:
        source, target = self.rng.sample(self.layout.names(), 2)
        mine = self.layout.buckets_of(source)
        if len(mine) == 1:
            return None
        moved, _ = _deal(self.rng, sorted(mine))
        return move_buckets(self.layout, frozenset(moved), source, target)

    def _deal_anything(self) -> LayoutChange:
        """Split a pair at random, or divide the buckets of two pairs between two new ones."""
        rng = self.rng
        old = list(self.layout.pairs)
        rng.shuffle(old)
        wide = [pair for pair in old if len(pair[1]) > 1]
        changed = old[:2] if len(old) > 1 and (not wide or rng.random() < 0.5) else wide[:1]  # noqa: PLR2004
        pool = sorted(frozenset[int]().union(*(buckets for _, buckets in changed)))
        return reassign(
            self.layout, [name for name, _ in changed], map(frozenset, _deal(rng, pool))
        )

    def _pursue(self, generation: Generation) -> None:
        """Make a generation the target when it is ready; abandon it when it takes too long."""
        world = self.world
        waited = world.now - self.begun
        if self.seen is not None and self._ready(generation, self.seen):
            self.building = None
            pairs = tuple((pair.name, buckets_of(pair.label)) for pair in generation.pairs)
            self.layout = Layout(pairs, self.layout.next_pair)
            intent = self.intent
            self._publish(
                intent.replace(version=intent.version + 1, target=generation.number),
                f"target is generation {generation.number}",
            )
            world.occur("TargetSet", None)
        elif waited > PATIENCE or (self.fickle and waited > PATIENCE // 5):
            self._give_up(generation)

    def _ready(self, generation: Generation, seen: Summary) -> bool:
        """Whether every replica of every new pair is verified and synced."""
        states = {pair.name: pair for pair in seen.pairs}
        for name in new_pairs(generation):
            state = states.get(name)
            if state is None or len(state.seats) < 2:  # noqa: PLR2004
                return False
            if not all(s.verified and s.synced and not s.lapsed for s in state.seats):
                return False
        return True

    def _give_up(self, generation: Generation) -> None:
        self.building = None
        self.world.coverage["generations given up by the operator"] += 1
        intent = self.intent
        left = tuple(g for g in intent.generations if g.number != generation.number)
        self._publish(
            intent.replace(version=intent.version + 1, generations=left),
            f"generation {generation.number} is given up",
        )
        for name in new_pairs(generation):
            for pod in self.world.cluster.replicas(name):
                self.world.after(self.rng.randint(0, 2500), self._stop, pod.name)

    def _stop(self, name: str, _b: object = None, _c: object = None) -> None:
        pod = self.world.cluster.pods.get(name)
        if pod is not None:
            self.world.cluster.remove(pod)

    def _perhaps_resize(self) -> None:
        """Perhaps change the number of merge slots; add merges for all slots."""
        seen = self.seen
        if seen is None or seen.completed or not seen.next_slot:
            return
        if self.resizes and self.world.now >= self.resizes[0][0]:
            count = self.resizes.pop(0)[1]
            intent = self.intent
            self._publish(
                intent.replace(version=intent.version + 1, slots=count), f"{count} merge slot(s)"
            )
            self.world.occur("SlotsWanted", None)
        there = self.world.cluster.slots()
        coming = [slot for slot in there if slot >= seen.next_slot]
        delivering = [slot for slot in seen.slots if slot.is_open]
        fresh = max(seen.next_slot, *(slot + 1 for slot in there))
        for number in range(self.intent.slots - len(delivering) - len(coming)):
            self.world.cluster.add_slot(fresh + number)
        known = {slot.number for slot in seen.slots}
        for slot in there - known:
            if slot < seen.next_slot and self.rng.random() < 0.3:  # noqa: PLR2004
                for pod in self.world.cluster.merges(slot):
                    self.world.cluster.remove(pod)

    def _tidy(self) -> None:
        """Remove pods of pairs that are neither wanted nor known to the lead."""
        seen = self.seen
        if seen is None or seen.generation != self.intent.target or self.rng.random() < 0.7:  # noqa: PLR2004
            return
        wanted = {*self.layout.names(), *(pair.name for pair in seen.pairs)}
        if self.building is not None:
            wanted |= set(self.building.names())
        for pod in list(self.world.cluster.pods.values()):
            if pod.group and pod.group not in wanted:
                self.world.cluster.remove(pod)


def _deal(rng: Random, buckets: Iterable[int]) -> list[list[int]]:
    """Split buckets into two non-empty parts."""
    shuffled = list(buckets)
    rng.shuffle(shuffled)
    at = rng.randint(1, len(shuffled) - 1)
    return [sorted(shuffled[:at]), sorted(shuffled[at:])]

"""Simulates an operator, the only writer of the intent: the policy is the real one.

Each turn it makes at most one step of a change from the intent and what it observed in the turn
before, then sees to the pods of pairs, merge slots and splits. It may die between any two actions;
all that it remembers is the intent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from tandem.policy.change import generations, roster, steps
from tandem.policy.change.wanted import Evidence
from tandem_core.contract.intent import Intent
from tandem_core.contract.intent_text import intent_text, read_intent_text
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import ChangeStage
from tandem_runtime.protocol.lead.summary import Summary, lead_report
from tandem_runtime.protocol.messages.peers import NewIntent, Terminate
from tandem_runtime.protocol.split.split_machine import SplitMachine
from tandem_simulator.engine.configuration import stream
from tandem_simulator.engine.demands import SimulatedUser
from tandem_simulator.engine.process import SPLIT, SimulatedProcess
from tandem_simulator.engine.trace import TURN
from tandem_simulator.externals.layouts import LabelCodec
from tandem_simulator.externals.shares import FUNCTION, generation_of

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World


ROUND = 300
"""Milliseconds between two turns."""
HOPELESS = 0.05
"""Share of generations of which a new pair cannot be built."""
PLACES = 0.2
"""Share of schedules in which the intent places source partitions on splits."""
HOPELESS_CUT = 0.1
"""Share of targets of which new pairs cannot run any more; most are cut before that is noticed."""


_NEXT_STEP = (ChangeStage.RETIRING, ChangeStage.PLANNED)


class SimulatedOperator:
    """Observes, decides, records and acts; rows flow without it."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        configuration = world.configuration
        first = generation_of(1, configuration.pairs)
        numbered = rng.random() < 0.8  # noqa: PLR2004 (others come from an older version)
        self.placing = stream(configuration.seed, configuration.number, "placement")
        self.places = self.placing.random() < PLACES
        intent = Intent(
            1,
            (first,),
            1,
            configuration.streams,
            configuration.slots,
            next_pair=len(configuration.pairs) * numbered,
            next_generation=2 * numbered,
            splits=configuration.splits * numbered,
            placement=self._placement(),
        )
        world.ledger.intent_written(intent)
        self.intents = [intent]
        self.user = SimulatedUser(configuration)
        self.codec = LabelCodec(configuration.buckets, rng)
        self.hopeless: dict[str, int] = {}
        """New pairs that cannot be built, and from when on that is known."""
        self.away_until = 0
        self.stale: dict[str, int] = {}
        """Volumes whose watch of the intent is stuck, and until when."""
        self.seen: LeadReport | None = None

    @property
    def intent(self) -> Intent:
        """The newest intent."""
        return self.intents[-1]

    def naming(self, pair: str) -> int:
        """The generation by which a replica that starts now names its pair's share."""
        numbers = [g.number for g in self.intent.generations if pair in g.names()]
        cut = [number for number in numbers if number <= self.intent.target]
        return max(cut) if cut else min(numbers, default=0)

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

    def _placement(self) -> tuple[tuple[str, str], ...]:
        """Draw where some source partitions are to be read; not all these splits are there."""
        if not self.places:
            return ()
        self.world.coverage["partitions placed"] += 1
        configuration, rng = self.world.configuration, self.placing
        partitions = [name for each in configuration.streams for name in each.partitions]
        chosen = [name for name in partitions if rng.random() < 0.5]  # noqa: PLR2004
        return tuple((name, f"split-{rng.randint(0, configuration.splits)}") for name in chosen)

    def _publish(self, intent: Intent, why: str) -> None:
        world, before = self.world, self.intent
        if self.placing.random() < 0.3:  # noqa: PLR2004
            intent = intent.replace(placement=self._placement())
        world.ledger.intent_written(intent)
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
        self._count(before, intent)

    def _count(self, before: Intent, intent: Intent) -> None:
        """Count a step, and report the moments at which faults may strike."""
        world = self.world
        then, now = before.change, intent.change
        if now is not None and (then is None or then.stage is not now.stage):
            world.coverage[f"change: {now.stage.value}"] += 1
            world.occur(f"Change{now.stage.value}", None)
            if then is not None and (then.stage, now.stage) == _NEXT_STEP:
                world.coverage["change: next step"] += 1
        done = sum(not past.abandoned for past in intent.history)
        if done > sum(not past.abandoned for past in before.history):
            world.coverage["change: done"] += 1
            world.coverage["change: done again"] += done > 1
            world.coverage["change: key moved"] += bool(intent.history[0].moves)
        if now is None and then is not None and intent.history == before.history:
            world.coverage["change: taken back"] += 1
        if len(intent.generations) > len(before.generations):
            world.occur("GenerationPlanned", None)
        if intent.target != before.target and len(intent.generations) > len(before.generations):
            world.coverage["change: back before the cut"] += 1
        if intent.target != before.target:
            world.occur("TargetSet", None)
        if intent.slots != before.slots:
            world.occur("SlotsWanted", None)

    # --- turns --------------------------------------------------------------------------------

    def go_away(self, until: int) -> None:
        """Die: stop deciding and acting until then, and forget everything but the intent."""
        self.away_until = max(self.away_until, until)
        self.seen = None
        self.intents[-1] = read_intent_text(intent_text(self.intent))
        self.world.coverage["operator killed"] += 1

    def round(self, _a: object = None, _b: object = None, _c: object = None) -> None:
        """Act on the observations of the last turn, then observe again."""
        self.user.follow(self.world.now, self.intent)
        if not self._is_away():
            self._decide()
            for act in self._acts():
                if self._is_away() or self._dies():
                    break
                act()
            if not self._is_away():
                self.seen = self._look()
        self.world.after(ROUND - 50 + self.rng.randint(0, 100), self.round)

    def _is_away(self) -> bool:
        return self.world.now < self.away_until

    def _dies(self) -> bool:
        if self.rng.random() >= self.world.configuration.operator_deaths:
            return False
        self.go_away(self.world.now + self.rng.randint(100, 1500))
        return True

    def _look(self) -> LeadReport | None:
        """The report of the split that leads in the highest term."""
        found = [
            summary
            for process in self.world.cluster.running(SPLIT)
            if (summary := self._summary(process)) is not None
        ]
        return lead_report(max(found, key=lambda each: each.term)) if found else None

    def _summary(self, process: SimulatedProcess) -> Summary | None:
        machine, volume = process.machine, process.volume
        if process.halted or not isinstance(machine, SplitMachine):
            return None
        if volume in self.world.network.mute or volume in self.world.register_cut:
            return None
        return machine.summary(process.local(self.world.now))

    def _decide(self) -> None:
        """Let the policy make a step from the intent."""
        now = self.world.now
        reasons = {pair: "it crashed" for pair, at in self.hopeless.items() if at <= now}
        evidence = Evidence(self.seen, reasons)
        step = steps.next_intent(self.intent, self.user.wanted, evidence, self.codec, now)
        if step is None:
            return
        planned = generations.building_generation(step.intent)
        known = {each.number for each in self.intent.generations}
        if planned is not None and planned.number not in known and self.rng.random() < HOPELESS:
            pair = self.rng.choice(generations.new_pairs(planned))
            self.hopeless[pair] = now + self.rng.randint(600, 3000)
        if step.intent.target > self.intent.target and self.rng.random() < HOPELESS_CUT:
            target = generations.target_generation(step.intent)
            self.hopeless.update((pair, now) for pair in generations.new_pairs(target))
        self._publish(step.intent, step.reason)

    # --- pods ---------------------------------------------------------------------------------

    def _acts(self) -> Iterator[Callable[[], None]]:
        """What is to be done about pods now; each is an action of its own."""
        yield from self._pairs()
        yield from self._merges()
        yield from self._splits()

    def _pairs(self) -> Iterator[Callable[[], None]]:
        cluster = self.world.cluster
        labels = {p.name: p.label for each in self.intent.generations for p in each.pairs}
        there = tuple(cluster.pairs)
        wanted = roster.pairs_to_run(self.intent, self.seen, there)
        for pair in wanted:
            if pair not in there:
                yield partial(cluster.add_pair, pair, labels[pair])
        for pair in there:
            if pair not in wanted and self._soon():
                yield partial(self._remove_pair, pair)

    def _remove_pair(self, pair: str) -> None:
        self.world.ledger.pair_removed(pair)
        self.world.cluster.remove_pair(pair)

    def _merges(self) -> Iterator[Callable[[], None]]:
        cluster = self.world.cluster
        there = sorted(cluster.slots())
        wanted = roster.slots_to_run(self.intent, self.seen, there)
        for slot in wanted:
            if slot not in there:
                yield partial(cluster.add_slot, slot)
        for slot in there:
            if slot not in wanted and self._soon():
                yield partial(cluster.remove_slot, slot)

    def _splits(self) -> Iterator[Callable[[], None]]:
        """Add splits, or ask the newest ones to leave."""
        cluster = self.world.cluster
        pods = [pod for pod in cluster.pods.values() if pod.kind == SPLIT]
        staying = [pod for pod in pods if not pod.leaving]
        wanted = self.intent.splits or len(staying)
        for _ in range(wanted - len(staying)):
            yield cluster.add_split
        for pod in staying[wanted:]:
            pod.leaving = True
            self.world.coverage["splits asked to leave"] += 1
        for pod in pods:
            process = pod.process
            # A process that restarts has to be asked again.
            if pod.leaving and process is not None and not vars(process.machine)["leaving"]:
                yield partial(self.world.tell, process, None, Terminate())

    def _soon(self) -> bool:
        """Whether to remove what is not wanted in this turn; that may take several."""
        return self.rng.random() < 0.3  # noqa: PLR2004

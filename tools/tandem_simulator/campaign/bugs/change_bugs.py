"""Seeded bugs of changes: state copied for new pairs, names, shares, slots that end, retirement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from tandem.policy.change import generations, giving_up, roster, steps
from tandem.policy.change.intent_step import IntentStep
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import LeadReport
from tandem_runtime.protocol.effects import Effect
from tandem_runtime.protocol.lead import copy_rules, generation_rules, peer_reports
from tandem_runtime.protocol.log import log_state
from tandem_runtime.protocol.log.entries import Entry, PairsRetired
from tandem_runtime.protocol.messages.peers import CopyState
from tandem_runtime.protocol.replica import joining
from tandem_runtime.protocol.types import Definition
from tandem_simulator.campaign.bugs.substitution import decision, everywhere, seeded_bug
from tandem_simulator.engine import effect_executor
from tandem_simulator.engine.process import Disk
from tandem_simulator.externals import sinks, spark

# --- retirement -----------------------------------------------------------------------------------


def _retire_when_delivered(
    known: log_state.LogState, reports: peer_reports.PeerReports, _now: int
) -> Iterator[Entry]:
    """One replica of each new pair may have answered; the other may have nothing yet."""
    first = known.first_of_generation
    if not known.generation or peer_reports.delivered_through(known, reports) < first:
        return
    kept = {n for g in known.generations if g >= known.generation for n in known.pairs(g)}
    old = tuple(pair for pair in known.living_pairs() if pair not in kept)
    if old:
        yield PairsRetired(old)


# --- names ----------------------------------------------------------------------------------------

_abandon = giving_up.abandon


def _abandon_and_return_names(intent: Intent, reason: str, now_ms: int) -> IntentStep:
    """Take the numbers of what is given up for free again."""
    step = _abandon(intent, reason, now_ms)
    building = generations.building_generation(intent)
    if building is None:
        return step
    made = generations.new_pairs(building)
    returned = step.intent.replace(
        next_generation=building.number,
        next_pair=min(int(name.removeprefix("pair-")) for name in made),
    )
    return IntentStep(returned, step.reason, step.functions, step.records)


# --- copies ---------------------------------------------------------------------------------------


def _pin_nothing(_known: object, _reports: object, _parent: str) -> tuple[int, ...]:
    return ()


_shipped_state = joining.shipped_state


def _ship_forgotten_epoch(holder: joining.Holder, to: str, request: CopyState) -> Effect:
    """Answer as if the state were still there."""
    if request.epoch is None or request.epoch in holder.checkpoints:
        return _shipped_state(holder, to, request)
    real = holder.checkpoints
    holder.checkpoints = [request.epoch]
    answer = _shipped_state(holder, to, request)
    holder.checkpoints = real
    return answer


_state_of = effect_executor.state_of


def _newest_state(disk: Disk, epoch: int) -> spark.ToyState:
    """The state of an epoch, or the newest one under its name."""
    if ("checkpoint", epoch) in disk:
        return _state_of(disk, epoch)
    newest = max(cast("int", key[1]) for key in disk if key[0] == "checkpoint")
    return _state_of(disk, newest)._replace(epoch=epoch)


_select = spark.select


def _select_one_more(state: spark.ToyState, keys: frozenset[int]) -> spark.ToyState:
    """The lowest key of a parent goes to every child."""
    held = {*state.counts, *(key for _, key, _ in state.windows)}
    return _select(state, keys | {min(held)} if held else keys)


def _differ_without_share(self: Definition, other: Definition) -> str:
    return _difference(self.replace(share=""), other)


_difference = Definition.difference

# --- slots ----------------------------------------------------------------------------------------


def _seal_at_once(self: sinks.SimulatedSink, slot: int, first: int, _last: int) -> bool:
    self.position(slot, first)
    self.sealed.add(slot)
    return True


def _slots_by_intent(
    intent: Intent, _lead: LeadReport | None, before: Sequence[int]
) -> tuple[int, ...]:
    wanted = max(1, intent.slots)
    kept = sorted(before)[:wanted]
    following = max(before, default=-1) + 1
    return (*kept, *range(following, following + wanted - len(kept)))


BUGS = (
    seeded_bug(
        "retire-before-commit",
        "old pairs end once the new ones have delivered, before both replicas have committed",
        decision(generation_rules.retire_pairs, _retire_when_delivered),
    ),
    seeded_bug(
        "name-used-twice",
        "the names of a change that was given up are used by the next one",
        (steps, "abandon", _abandon_and_return_names),
    ),
    seeded_bug(
        "unpinned-copy",
        "parents do not keep the epoch that is copied, and send their newest state under its name "
        "where they would refuse",
        *everywhere(copy_rules.pinned_epochs, _pin_nothing),
        *everywhere(joining.shipped_state, _ship_forgotten_epoch),
        (effect_executor, "state_of", _newest_state),
    ),
    seeded_bug(
        "both-keep-key",
        "state is reduced so that both children of a pair keep one key",
        (spark, "select", _select_one_more),
    ),
    seeded_bug(
        "foreign-spare",
        "a spare of another share joins; neither its own shell nor the holder compares shares",
        (Definition, "difference", _differ_without_share),
    ),
    seeded_bug(
        "early-seal",
        "a slot is sealed before it has delivered its last epoch",
        (sinks.SimulatedSink, "seal", _seal_at_once),
    ),
    seeded_bug(
        "slots-by-intent",
        "merges go as soon as the intent has fewer slots, before the lead's records",
        (roster, "slots_to_run", _slots_by_intent),
    ),
)

"""Explains routing decisions to people, in sentences."""

import math

from tandem.routing.planning.balance import Balance
from tandem.routing.planning.routing_decision import RoutingDecision
from tandem.routing.planning.settings import PlanningSettings
from tandem.routing.planning.workload import Workload
from tandem_core.routing.function import RoutingFunction


def missed_bounds(balance: Balance, workload: Workload) -> tuple[str, ...]:
    """Return one sentence for each missed bound."""
    sentences = []
    for k, each in enumerate(balance.resources):
        if not each.missed:
            continue
        sentence = (
            f"{each.name}: {_ratio(each.ratio)} between pairs, tolerated is {each.tolerance:g}"
        )
        share = sum(each.loads) / len(each.loads)
        loads = workload.key_loads[k]
        if len(loads) and loads.max() > share * each.tolerance:
            hottest = int(workload.hashes[loads.argmax()])
            sentence += (
                f"; key {hottest:016x} alone is {loads.max() / share:.2f} times a pair's fair "
                "share, and a key has one owner"
            )
        sentences.append(sentence)
    return tuple(sentences)


def reasons_for(
    decision: RoutingDecision,
    previous: RoutingFunction | None,
    settings: PlanningSettings,
    too_many: int,
    finished: bool,
) -> tuple[str, ...]:
    """Return sentences on the decision and its reasons."""
    function = decision.function
    sentences = [_about_pairs(function, previous)]
    sentences.append(
        f"{function.hot_count:,} hot keys placed by {settings.heuristic.value}"
        f" with {settings.utility.name}"
    )
    if too_many:
        sentences.append(f"{too_many:,} more hot keys are over the limit and left to the ring")
    if not finished:
        sentences.append(
            "placing hot keys ended at its bound on work; more balance may be possible"
        )
    if previous is not None:
        moves = decision.moves
        sentences.append(
            f"{len(moves.keys):,} keys and {len(moves.buckets):,} buckets move, "
            f"{moves.total_bytes:,} bytes, {decision.migration:.2f} times a pair's state"
        )
    before = f"{_ratio(decision.before.relative)} before, " if decision.before else ""
    sentences.append(f"relative imbalance {before}{_ratio(decision.after.relative)} after")
    return tuple(sentences)


def _about_pairs(function: RoutingFunction, previous: RoutingFunction | None) -> str:
    if previous is None:
        return f"first function, over {len(function.pairs):,} pairs"
    added = sorted(set(function.pairs) - set(previous.pairs))
    removed = sorted(set(previous.pairs) - set(function.pairs))
    changes = [
        f"{', '.join(names)} {verb}"
        for names, verb in ((added, "added"), (removed, "removed"))
        if names
    ]
    if not changes:
        return f"the same {len(function.pairs):,} pairs"
    return f"{len(function.pairs):,} pairs instead of {len(previous.pairs):,}: {'; '.join(changes)}"


def _ratio(value: float) -> str:
    return "infinitely many times" if math.isinf(value) else f"{value:.2f}"

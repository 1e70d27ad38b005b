"""Constructs a routing function for given load and pairs, from scratch or from the last one."""

from collections.abc import Sequence

from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.balance import balance_of
from tandem.routing.planning.construction import Task
from tandem.routing.planning.explain import missed_bounds
from tandem.routing.planning.routing_decision import RoutingDecision
from tandem.routing.planning.settings import PlanningSettings
from tandem.routing.planning.workload import Workload
from tandem_core.routing.function import RoutingFunction

_WORTH_IT = 0.95
"""If bounds stay missed, keys move only if the imbalance falls below this fraction of itself."""


def construct(
    profile: LoadProfile,
    pairs: Sequence[str],
    previous: RoutingFunction | None = None,
    settings: PlanningSettings | None = None,
) -> RoutingDecision:
    """Build the function for these pairs under this load, with few moves from `previous`.

    Returns a function for any load; bounds that cannot be kept are in `RoutingDecision.missed`.
    With the same pairs, the function is kept while all bounds hold, or if a change would gain
    little. Equal arguments give equal decisions.
    """
    settings = settings or PlanningSettings()
    names = tuple(sorted(pairs))
    same_pairs = previous is not None and previous.pairs == names
    task = Task.of(profile, names, previous, settings)
    if previous and same_pairs and not why_reconstruct(profile, previous, settings):
        return task.stay(previous, "all bounds hold with the present function")
    best = task.attempt(task.initial_vnodes())
    if best.balance.missed:
        best = min(best, task.compensated(best), key=lambda attempt: attempt.rank)
    decision = task.change(best)
    if previous and same_pairs and decision.missed and not _better(decision):
        return task.stay(previous, "no function found that is worth moving for")
    return decision


def why_reconstruct(
    profile: LoadProfile, function: RoutingFunction, settings: PlanningSettings | None = None
) -> tuple[str, ...]:
    """Return the bounds that a function misses under the present load; empty if none.

    A bound may be out of reach, so construction need not help: compare `RoutingDecision.before`
    and `RoutingDecision.after`.
    """
    settings = settings or PlanningSettings()
    workload = Workload.of(profile, settings, function.hot_hashes)
    return missed_bounds(balance_of(workload.loads_under(function), settings), workload)


def _better(decision: RoutingDecision) -> bool:
    """Whether the gain in balance is worth the moves."""
    assumed = decision.before or decision.after
    return decision.after.relative < _WORTH_IT * assumed.relative

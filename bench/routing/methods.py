"""The compared methods, each grown from one pair by one pair at a time."""

from dataclasses import replace

import numpy as np
from bench.routing import printed
from bench.routing.world import Measured, World, pair_names

from tandem.routing.planning.balance import modulo_owner
from tandem.routing.planning.construct import construct
from tandem.routing.planning.settings import Heuristic, PlanningSettings
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.ring import OwnerArray

UNIFORM, CONSISTENT = "uniform", "consistent"
HEURISTICS = [each.value for each in Heuristic]


def grow(
    method: str, form: str, world: World, settings: PlanningSettings, pairs: int
) -> list[Measured]:
    """Results of every step from 2 to `pairs`; `form` is "printed" or "tandem"."""
    if method in (UNIFORM, CONSISTENT):
        return _grow_baseline(method, world, settings, pairs)
    if form == "printed":
        return printed.grow(world, settings, Heuristic(method), pairs)
    return _grow_tandem(world, replace(settings, heuristic=Heuristic(method)), pairs)


def _grow_baseline(
    method: str, world: World, settings: PlanningSettings, pairs: int
) -> list[Measured]:
    results = []
    owners: OwnerArray = np.zeros(world.domain, dtype=np.uint16)
    for count in range(2, pairs + 1):
        if method == UNIFORM:
            new = modulo_owner(world.hashes, count)
        else:
            plain = RoutingFunction.plain(pair_names(count), printed.VNODES)
            new = plain.owner_of(world.hashes)
        results.append(world.measure(owners, new, count, settings))
        owners = new
    return results


def _grow_tandem(world: World, settings: PlanningSettings, pairs: int) -> list[Measured]:
    results = []
    function = construct(world.profile, pair_names(1), None, settings).function
    owners = function.owner_of(world.hashes)
    for count in range(2, pairs + 1):
        function = construct(world.profile, pair_names(count), function, settings).function
        new = function.owner_of(world.hashes)
        measured = world.measure(owners, new, count, settings)
        results.append(
            Measured(measured.imbalance, measured.migration, measured.each, function.hot_count)
        )
        owners = new
    return results

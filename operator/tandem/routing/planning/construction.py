"""The steps of one construction: the keys to place, the attempts, and the decision."""

from dataclasses import dataclass, replace

import numpy as np

from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.balance import Balance, balance_of
from tandem.routing.planning.explain import missed_bounds, reasons_for
from tandem.routing.planning.heuristics import redist, scan
from tandem.routing.planning.placement import NOWHERE, Board, PlaceArray
from tandem.routing.planning.readjust import readj
from tandem.routing.planning.routing_decision import RoutingDecision, moves_between
from tandem.routing.planning.settings import Beta, FloatArray, Heuristic, PlanningSettings
from tandem.routing.planning.tail_weights import VnodeArray, compensating_vnodes
from tandem.routing.planning.workload import Workload, hot_keys, loads_by_owner
from tandem_core.routing.function import MOST_VNODES, NOMINAL_VNODES, RoutingFunction
from tandem_core.routing.function_codec import hot_keys_that_fit
from tandem_core.routing.ring import BUCKETS, OwnerArray, Ring, bucket_of
from tandem_core.routing.xxh64 import U64Array

_LEAST_TOLERANCE = 1.001
"""Replaces a tolerance of exactly 1, whose logarithm would cause a division by zero."""

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Attempt:
    """One complete placement."""

    vnodes: VnodeArray
    key_owners: OwnerArray
    """Owners of all single keys of the workload."""
    balance: Balance
    migration: float
    finished: bool
    """Whether the heuristic finished before its bound on work."""

    @property
    def rank(self) -> tuple[bool, float]:
        """Lower is better: bounds kept first, then the paper's objective b·(1 + m)."""
        return bool(self.balance.missed), max(self.balance.relative, 1.0) * (1 + self.migration)


@dataclass(frozen=True, eq=False)
class Task:
    """The prepared input of one call of `construct`."""

    settings: PlanningSettings
    pairs: tuple[str, ...]
    previous: RoutingFunction | None
    ring: Ring
    workload: Workload
    """Its single keys are all keys with an explicit entry before or after."""
    hot: PlaceArray
    """Keys to place, as indices into the workload's, hottest first."""
    dropped: PlaceArray
    """Keys that lose their entry."""
    too_many: int
    """Hot keys beyond the limit, left to the ring."""
    former_keys: PlaceArray
    """Former owner of each single key, as index into the new pairs; `NOWHERE` if it is gone."""
    former_buckets: PlaceArray

    @classmethod
    def of(
        cls,
        profile: LoadProfile,
        pairs: tuple[str, ...],
        previous: RoutingFunction | None,
        settings: PlanningSettings,
    ) -> "Task":
        """Prepare a construction."""
        most = max(min(settings.most_hot_keys, hot_keys_that_fit(pairs)), 0)
        limited = replace(settings, most_hot_keys=most)
        hot, too_many = hot_keys(profile, limited, len(pairs))
        former: U64Array = previous.hot_hashes if previous else np.empty(0, dtype=np.uint64)
        workload = Workload.of(profile, settings, np.union1d(hot, former))
        places = np.searchsorted(workload.hashes, hot)
        volume = workload.key_rows[places]
        places = places[np.lexsort((hot, -volume))]
        dropped = np.setdiff1d(np.arange(len(workload.hashes)), places)
        return cls(
            settings,
            pairs,
            previous,
            Ring(pairs, MOST_VNODES),
            workload,
            places,
            dropped,
            too_many,
            *_former_places(previous, pairs, workload),
        )

    def initial_vnodes(self) -> VnodeArray:
        """Return the previous weights, and the nominal one for new pairs."""
        known = (
            dict(zip(self.previous.pairs, self.previous.vnodes, strict=True))
            if self.previous
            else {}
        )
        vnodes = np.array([known.get(pair, NOMINAL_VNODES) for pair in self.pairs])
        return vnodes if vnodes.any() else np.full(len(self.pairs), NOMINAL_VNODES)

    def board(self, bucket_owners: OwnerArray, owners: OwnerArray) -> Board:
        """Return the board before any hot key is placed."""
        active, hot, dropped = self._active(), self.hot, self.dropped
        loads = loads_by_owner(self.workload.bucket_loads, bucket_owners, len(self.pairs))
        loads += loads_by_owner(
            self.workload.key_loads[:, dropped], owners[dropped], len(self.pairs)
        )
        state = self.workload.key_loads[0]
        former = self.former_keys
        gone = (former[dropped] != owners[dropped]) & (self.previous is not None)
        forced = state[hot][former[hot] == NOWHERE].sum() if self.previous else 0.0
        tolerances = [self.settings.resources[k].tolerance for k in active]
        return Board(
            loads=loads[active],
            key_loads=self.workload.key_loads[active][:, hot],
            tolerance=np.log(np.maximum(tolerances, _LEAST_TOLERANCE)),
            volume=np.maximum(self.workload.key_rows[hot], _TINY),
            move_cost=state[hot],
            former=former[hot],
            utility=self.settings.utility,
            ideal_cost=max(float(state.sum()) / len(self.pairs), _TINY),
            spent=float(state[dropped][gone].sum() + forced),
        )

    def attempt(self, vnodes: VnodeArray) -> Attempt:
        """Place the hot keys over a ring with these weights."""
        bucket_owners = self.ring.owners(vnodes)
        key_owners = bucket_owners[bucket_of(self.workload.hashes)]
        board = self.board(bucket_owners, key_owners)
        finished = self._place(board, key_owners[self.hot].astype(np.intp))
        return self._placed(vnodes, board.places, finished)

    def compensated(self, attempt: Attempt) -> Attempt:
        """Return an attempt over a ring whose weights compensate for the imbalance.

        Hot keys keep their places if that keeps the bounds, else they are placed again.
        """
        vnodes = self._compensating_vnodes(attempt)
        places = attempt.key_owners[self.hot].astype(np.intp)
        same_places = self._placed(vnodes, places, attempt.finished)
        if not same_places.balance.missed:
            return same_places
        return min(same_places, self.attempt(vnodes), key=lambda each: each.rank)

    def change(self, attempt: Attempt) -> RoutingDecision:
        """Decide to use the attempt's function; return its moves, balance and reasons."""
        hot = np.sort(self.hot)
        function = RoutingFunction(
            self.pairs,
            tuple(map(int, attempt.vnodes)),
            self.workload.hashes[hot],
            attempt.key_owners[hot],
        )
        decision = self._decision(function, attempt.balance, attempt.migration)
        told = reasons_for(decision, self.previous, self.settings, self.too_many, attempt.finished)
        return replace(decision, reasons=told)

    def stay(self, function: RoutingFunction, reason: str) -> RoutingDecision:
        """Decide to keep the previous function."""
        balance = balance_of(self.workload.loads_under(function), self.settings)
        return replace(self._decision(function, balance, 0.0), reasons=(reason,))

    def _decision(
        self, function: RoutingFunction, balance: Balance, migration: float
    ) -> RoutingDecision:
        previous = self.previous
        before = (
            balance_of(self.workload.loads_under(previous), self.settings) if previous else None
        )
        return RoutingDecision(
            function,
            moves_between(previous or function, function, self.workload),
            before,
            balance,
            migration,
            missed_bounds(balance, self.workload),
            (),
        )

    def _compensating_vnodes(self, attempt: Attempt) -> VnodeArray:
        """Return weights under which the attempt's placement keeps the bounds, with a margin."""
        # Quadratic load is in hot keys; constant load is spread by the ring already.
        able = [k for k, each in enumerate(self.settings.resources) if each.beta is Beta.LINEAR]
        if not able:
            return attempt.vnodes
        fair = self._totals() / len(self.pairs)
        keys: FloatArray = (self.workload.key_loads[able] / fair[able, None]).mean(axis=0)
        buckets: FloatArray = (self.workload.bucket_loads[able] / fair[able, None]).mean(axis=0)
        fixed = loads_by_owner(keys[None, :], attempt.key_owners, len(self.pairs))[0]
        tolerance = min(self.settings.resources[k].tolerance for k in able)
        # Half of the tolerance is reserved for drift and for hot keys that do not fit.
        ratio = 1 + (tolerance - 1) / 2
        return compensating_vnodes(self.ring, attempt.vnodes, buckets, fixed, ratio)

    def _placed(self, vnodes: VnodeArray, places: PlaceArray, finished: bool) -> Attempt:
        """Return the attempt with hot keys at these places over a ring with these weights."""
        bucket_owners = self.ring.owners(vnodes)
        key_owners = bucket_owners[bucket_of(self.workload.hashes)]
        key_owners[self.hot] = places
        loads = self.workload.pair_loads(bucket_owners, key_owners, len(self.pairs))
        return Attempt(
            vnodes,
            key_owners,
            balance_of(loads, self.settings),
            self._migration(bucket_owners, key_owners),
            finished,
        )

    def _migration(self, bucket_owners: OwnerArray, key_owners: OwnerArray) -> float:
        """Return the load of the state that moves, over the mean of a pair (m)."""
        if self.previous is None:
            return 0.0
        keys = self.workload.key_loads[0, self.former_keys != key_owners]
        buckets = self.workload.bucket_loads[0, self.former_buckets != bucket_owners]
        return float((keys.sum() + buckets.sum()) / self._totals()[0] * len(self.pairs))

    def _totals(self) -> FloatArray:
        """Return the total load of each resource; never 0."""
        totals: FloatArray = self.workload.bucket_loads.sum(axis=1)
        totals = totals + self.workload.key_loads.sum(axis=1)
        return np.maximum(totals, _TINY)

    def _active(self) -> list[int]:
        """Return the resources that explicit entries can balance: all that are not constant."""
        return [
            k for k, each in enumerate(self.settings.resources) if each.beta is not Beta.CONSTANT
        ]

    def _place(self, board: Board, on_ring: PlaceArray) -> bool:
        """Run the heuristic; False if a bound on its work ended it."""
        if board.keys == 0 or len(board.loads) == 0:
            return True
        match self.settings.heuristic:
            case Heuristic.SCAN:
                scan(board)
            case Heuristic.REDIST:
                redist(board)
            case Heuristic.READJ:
                # Keys of removed pairs start where the new ring has them.
                start = np.where(board.former == NOWHERE, on_ring, board.former)
                return readj(board, start)
        return True


def _former_places(
    previous: RoutingFunction | None, pairs: tuple[str, ...], workload: Workload
) -> tuple[PlaceArray, PlaceArray]:
    """Return the former owners of single keys and buckets, as indices into the new pairs."""
    if previous is None:
        return np.full(len(workload.hashes), NOWHERE), np.full(BUCKETS, NOWHERE)
    index = {pair: i for i, pair in enumerate(pairs)}
    translate = np.array([index.get(pair, NOWHERE) for pair in previous.pairs])
    return translate[previous.owner_of(workload.hashes)], translate[previous.bucket_owners]

"""Construction in cases so small that every assignment of keys to pairs can be tried."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.routing.load.key_summary import AmountArray
from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.construct import construct, why_reconstruct
from tandem.routing.planning.routing_decision import RoutingDecision
from tandem_core.routing.xxh64 import U64Array, hash_words

CASES = 100


def names(count: int) -> list[str]:
    return [f"pair-{number}" for number in range(count)]


def keys(count: int, seed: int) -> U64Array:
    return hash_words(np.arange(count, dtype=np.uint64), seed=seed)


def profile_of(amounts: AmountArray, seed: int) -> LoadProfile:
    return LoadProfile.exact(keys(len(amounts), seed), amounts)


def relative_imbalance(amounts: AmountArray, owners: npt.NDArray[np.intp], pairs: int) -> float:
    """b with every resource linear in its own measure and a tolerance of 1.2."""
    product = 1.0
    for column in range(3):
        load = np.bincount(owners, amounts[:, column], minlength=pairs)
        if load.min() <= 0:
            return math.inf
        product *= load.max() / load.min() / 1.2
    return float(product ** (1 / 3))


def best_possible(amounts: AmountArray, pairs: int) -> float:
    """The lowest b of all assignments of keys to pairs."""
    count = pairs ** len(amounts)
    digits = np.arange(count)[:, None] // pairs ** np.arange(len(amounts)) % pairs
    product = np.ones(count)
    for column in range(3):
        loads = np.stack([(digits == pair) @ amounts[:, column] for pair in range(pairs)])
        with np.errstate(divide="ignore"):
            product *= loads.max(axis=0) / loads.min(axis=0) / 1.2
    return float(product.min() ** (1 / 3))


def small_case(seed: int, alike: bool) -> tuple[AmountArray, int, RoutingDecision]:
    """Two or three pairs and few keys; built from nothing, after a change of load, or of pairs."""
    rng = np.random.default_rng(seed)
    pairs = int(rng.integers(2, 4))
    count = int(rng.integers(pairs, 9 if pairs == 2 else 8))
    column = rng.integers(1, 1_000, count)
    amounts = np.stack([column] * 3, axis=1) if alike else rng.integers(1, 1_000, (count, 3))
    previous = None
    if kind := seed % 4:
        earlier = profile_of(rng.integers(1, 1_000, (count, 3)), seed)
        others = names(pairs) if kind == 1 else names(max(pairs + (-1, 1)[kind - 2], 1))
        previous = construct(earlier, others).function
    profile = profile_of(amounts, seed)
    if (
        previous
        and previous.pairs == tuple(names(pairs))
        and not why_reconstruct(profile, previous)
    ):
        previous = None
    return amounts, pairs, construct(profile, names(pairs), previous)


@pytest.mark.parametrize("alike", [True, False])
def test_small_cases_come_within_a_tenth_of_the_optimum(alike: bool) -> None:
    near = 0
    for seed in range(CASES):
        amounts, pairs, decision = small_case(seed, alike)
        owners = decision.function.owner_of(keys(len(amounts), seed)).astype(np.intp)
        reached = relative_imbalance(amounts, owners, pairs)
        near += reached <= 1.1 * best_possible(amounts, pairs)
    assert near >= 0.95 * CASES


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_missed_bounds_are_always_reported(seed: int, alike: bool) -> None:
    amounts, pairs, decision = small_case(seed, alike)
    owners = decision.function.owner_of(keys(len(amounts), seed)).astype(np.intp)
    measured = {"state": 2, "computation": 0, "communication": 1}
    for name, column in measured.items():
        load = np.bincount(owners, amounts[:, column], minlength=pairs)
        beyond = load.min() == 0 or load.max() / load.min() > 1.2 * (1 + 1e-9)
        told = [sentence for sentence in decision.missed if sentence.startswith(f"{name}:")]
        assert len(told) == beyond

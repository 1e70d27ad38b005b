"""Measures, resource functions and thresholds, by the paper's own numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.routing.load.key_summary import AmountArray
from tandem.routing.load.profile import LoadProfile
from tandem.routing.planning.balance import ResourceBalance
from tandem.routing.planning.settings import Beta, Measure, PlanningSettings, Resource, Utility
from tandem.routing.planning.thresholds import counting_epsilon, delta, theta
from tandem.routing.planning.workload import hot_keys
from tandem_core.routing.errors import InvalidSettingError
from tandem_core.routing.xxh64 import hash_words

TOY = {"X": 5, "Z": 3, "V": 2, "R": 1, "U": 4, "Y": 3, "W": 3, "L": 1}
# The paper's figure 1; migration counts the frequencies of keys whose channel changed.
TOY_FUNCTIONS = [
    (["XZVR", "UYWL"], ["XZ", "UY", "WVRL"], (1, 39 / 35), (8 / 7, 34 / 15), 7),
    (["XZV", "UYWLR"], ["X", "UY", "WZVRL"], (1.2, 38 / 36), (2, 25 / 24), 10),
    (["XZV", "UYWLR"], ["XRL", "UY", "WZV"], (1.2, 38 / 36), (8 / 7, 27 / 22), 10),
]


def loads(channels: list[str], beta: Beta) -> list[float]:
    return [float(beta.of(np.array([TOY[k] for k in c], dtype=float)).sum()) for c in channels]


def ratio(values: list[float]) -> float:
    return ResourceBalance("toy", tuple(values), 1.2).ratio


@pytest.mark.parametrize(("two", "three", "at_two", "at_three", "moved"), TOY_FUNCTIONS)
def test_toy_example_matches_paper(
    two: list[str],
    three: list[str],
    at_two: tuple[float, float],
    at_three: tuple[float, float],
    moved: int,
) -> None:
    for channels, (network, processing) in ((two, at_two), (three, at_three)):
        assert ratio(loads(channels, Beta.LINEAR)) == pytest.approx(network)
        assert ratio(loads(channels, Beta.QUADRATIC)) == pytest.approx(processing, rel=0.05)
    changed = [k for k in TOY if channel(two, k) != channel(three, k)]
    assert sum(TOY[k] for k in changed) == moved


def channel(channels: list[str], key: str) -> int:
    return next(i for i, held in enumerate(channels) if key in held)


def test_toy_example_quadratic_loads() -> None:
    assert loads(["XZVR", "UYWL"], Beta.QUADRATIC) == [39, 35]


def test_load_ratio_handles_zero_loads() -> None:
    assert ratio([0.0, 0.0]) == 1
    assert math.isinf(ratio([1.0, 0.0]))
    assert ResourceBalance("x", (1.2, 1.0), 1.2).relative == pytest.approx(1)
    assert not ResourceBalance("x", (1.2, 1.0), 1.2).missed


def linear(tolerance: float = 1.2) -> Resource:
    return Resource("state", Measure.ROWS, Beta.LINEAR, tolerance)


def test_theta_and_delta_match_paper() -> None:
    assert theta(1.2, 10) == pytest.approx(0.17647, abs=5e-6)
    assert delta(linear(), 10, 0.1, 1.0) == pytest.approx(0.0017647, abs=5e-8)
    assert theta(1.2, 1) == 0
    assert delta(linear(), 1, 0.1, 1.0) == 1


def test_constant_resources_need_no_entries() -> None:
    constant = Resource("state", Measure.ROWS, Beta.CONSTANT)
    assert delta(constant, 10, 0.1, 1.0) == 1


def settings_with(state: Beta, computation: Beta, network: Beta) -> PlanningSettings:
    return PlanningSettings(
        Resource("state", Measure.ROWS, state),
        Resource("computation", Measure.ROWS, computation),
        Resource("network", Measure.ROWS, network),
    )


def zipf_amounts(keys: int) -> AmountArray:
    rows = (10**9 / np.arange(1, keys + 1)).astype(np.int64)
    return np.stack([rows, rows * 0, rows * 0], axis=1)


def zipf_profile(keys: int) -> LoadProfile:
    return LoadProfile.exact(hash_words(np.arange(keys, dtype=np.uint64)), zipf_amounts(keys))


def test_number_of_explicit_entries_matches_paper() -> None:
    settings = settings_with(Beta.LINEAR, Beta.CONSTANT, Beta.LINEAR)
    hot, too_many = hot_keys(zipf_profile(1_000_000), settings, 10)
    assert 39 <= len(hot) <= 50
    assert too_many == 0


def test_hot_keys_are_sorted_hottest_first_and_limited() -> None:
    settings = replace(settings_with(Beta.LINEAR, Beta.LINEAR, Beta.LINEAR), most_hot_keys=7)
    hot, too_many = hot_keys(zipf_profile(10_000), settings, 10)
    hashes = hash_words(np.arange(10_000, dtype=np.uint64))
    assert hot.tolist() == hashes[:7].tolist()
    assert too_many > 0


def test_quadratic_threshold_rises_once_load_is_known() -> None:
    quadratic = Resource("computation", Measure.ROWS, Beta.QUADRATIC)
    blind = delta(quadratic, 10, 0.1, 1 / 1_000_000)
    shares = zipf_amounts(1_000_000)[:, 0] / zipf_amounts(1_000_000)[:, 0].sum()
    informed = delta(quadratic, 10, 0.1, float((shares**2).sum()))
    assert informed > blind
    settings = settings_with(Beta.LINEAR, Beta.QUADRATIC, Beta.LINEAR)
    hot, _ = hot_keys(zipf_profile(1_000_000), settings, 10)
    assert len(hot) <= np.count_nonzero(shares >= blind)
    assert len(hot) == np.count_nonzero(shares >= min(informed, delta(linear(), 10, 0.1, 1.0)))


def test_strictest_resource_sets_counting_error() -> None:
    only_linear = settings_with(Beta.LINEAR, Beta.CONSTANT, Beta.LINEAR)
    quadratic = settings_with(Beta.LINEAR, Beta.QUADRATIC, Beta.LINEAR)
    assert counting_epsilon(only_linear, 10, 1e6) == pytest.approx(0.00017647, abs=5e-9)
    assert counting_epsilon(quadratic, 10, 1e6) < counting_epsilon(only_linear, 10, 1e6)
    assert counting_epsilon(quadratic, 10, 1e30) > 0
    assert counting_epsilon(only_linear, 1, 0) <= 1


@given(st.floats(0, 50), st.floats(0, 50))
def test_utilities_match_paper(rho: float, gamma: float) -> None:
    imbalance, migration = np.array([rho]), np.array([gamma])
    log = math.log(1 + gamma)
    expected = {
        Utility.UA: rho,
        Utility.UAPM: rho + gamma,
        Utility.UAPLM: rho + log,
        Utility.UATM: rho * (1 + gamma),
        Utility.UATLM: rho * (1 + log),
    }
    for utility, value in expected.items():
        assert float(utility.of(imbalance, migration)[0]) == pytest.approx(value)


@pytest.mark.parametrize("tolerance", [0.99, math.inf, math.nan])
def test_impossible_tolerances_are_refused(tolerance: float) -> None:
    with pytest.raises(InvalidSettingError, match="tolerance of state"):
        linear(tolerance)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="untracked_share"):
        PlanningSettings(untracked_share=0)
    with pytest.raises(InvalidSettingError, match="most_hot_keys"):
        PlanningSettings(most_hot_keys=-1)

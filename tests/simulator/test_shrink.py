"""The shrinker finds the steps that matter, within its bound of runs."""

from tandem_simulator.campaign.shrink import MOST_RUNS, shrink


def test_only_what_matters_is_left() -> None:
    def fails(kept: frozenset[int]) -> bool:
        return {3, 17} <= kept

    assert set(shrink(range(24), fails)) == {3, 17}


def test_nothing_is_left_when_it_always_fails() -> None:
    assert shrink(range(10), lambda _: True) == ()


def test_everything_stays_when_all_of_it_matters() -> None:
    whole = frozenset(range(6))
    assert set(shrink(range(6), lambda kept: kept == whole)) == whole


def test_the_number_of_runs_is_bounded() -> None:
    runs = 0

    def fails(kept: frozenset[int]) -> bool:
        nonlocal runs
        runs += 1
        return len(kept) >= 150

    shrink(range(300), fails)
    assert runs <= MOST_RUNS

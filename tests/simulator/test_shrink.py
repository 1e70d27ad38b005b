"""The shrinker finds the steps that matter, within its bound of runs."""

from tandem_simulator.campaign.shrink import MOST_RUNS, shrink


def test_shrink_keeps_only_relevant_steps() -> None:
    def fails(kept: frozenset[int]) -> bool:
        return {3, 17} <= kept

    assert set(shrink(range(24), fails)) == {3, 17}


def test_shrink_keeps_nothing_if_every_run_fails() -> None:
    assert shrink(range(10), lambda _: True) == ()


def test_shrink_keeps_every_step_if_all_are_relevant() -> None:
    whole = frozenset(range(6))
    assert set(shrink(range(6), lambda kept: kept == whole)) == whole


def test_shrink_bounds_number_of_runs() -> None:
    runs = 0

    def fails(kept: frozenset[int]) -> bool:
        nonlocal runs
        runs += 1
        return len(kept) >= 150

    shrink(range(300), fails)
    assert runs <= MOST_RUNS

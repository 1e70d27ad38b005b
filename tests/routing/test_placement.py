"""The three heuristics on small boards, against their definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.routing.planning.heuristics import redist, scan
from tandem.routing.planning.placement import NOWHERE, Board
from tandem.routing.planning.readjust import readj
from tandem.routing.planning.settings import Utility


def board_of(
    loads: list[list[float]],
    keys: list[list[float]],
    former: list[int] | None = None,
    utility: Utility = Utility.UAPM,
) -> Board:
    """A board with one line of loads, and one of keys, for each resource."""
    key_loads = np.array(keys)
    count = key_loads.shape[1]
    return Board(
        loads=np.array(loads),
        key_loads=key_loads,
        tolerance=np.log(np.full(len(loads), 1.2)),
        volume=key_loads[0],
        move_cost=key_loads[0],
        former=np.array(former if former is not None else [NOWHERE] * count),
        utility=utility,
        ideal_cost=float(key_loads[0].sum()) / len(loads[0]),
    )


@st.composite
def boards(draw: st.DrawFn) -> Board:
    pairs, keys = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    resources = draw(st.integers(1, 3))
    amount = st.floats(0.5, 20)
    line = st.lists(amount, min_size=keys, max_size=keys)
    former = draw(st.lists(st.integers(NOWHERE, pairs - 1), min_size=keys, max_size=keys))
    base = draw(
        st.lists(
            st.lists(st.floats(0, 20), min_size=pairs, max_size=pairs),
            min_size=resources,
            max_size=resources,
        )
    )
    loads = draw(st.lists(line, min_size=resources, max_size=resources))
    return board_of(base, loads, former, draw(st.sampled_from(Utility)))


def copy_of(board: Board) -> Board:
    return Board(
        board.loads.copy(),
        board.key_loads,
        board.tolerance,
        board.volume,
        board.move_cost,
        board.former,
        board.utility,
        board.ideal_cost,
    )


def utility_now(board: Board) -> float:
    return float(board.value(np.array(board.penalty_now()), np.array(board.spent)))


@given(boards())
def test_predicted_utility_equals_utility_after_placing(board: Board) -> None:
    foreseen = board.placing(np.arange(board.keys))
    for key, pair in itertools.product(range(board.keys), range(board.pairs)):
        after = copy_of(board)
        after.put(key, pair)
        assert foreseen[key, pair] == pytest.approx(utility_now(after), rel=1e-9)


@given(boards())
def test_scan_places_each_key_at_lowest_utility(board: Board) -> None:
    scanned = copy_of(board)
    scan(scanned)
    for key in range(board.keys):
        values = board.placing(np.array([key]))[0]
        chosen = int(scanned.places[key])
        assert values[chosen] <= values.min() * (1 + 1e-9)
        board.put(key, chosen)


@given(boards())
def test_redist_picks_lowest_utility_per_volume(board: Board) -> None:
    done = copy_of(board)
    redist(done)
    assert (done.places != NOWHERE).all()
    left = list(range(board.keys))
    while left:
        values = board.placing(np.array(left)) / board.volume[left, None]
        best = [k for k, line in zip(left, values, strict=True) if line.min() <= values.min()]
        key = best[0]
        board.put(key, int(done.places[key]))
        assert utility_now(board) / board.volume[key] <= values.min() * (1 + 1e-9)
        left.remove(key)


@given(boards())
@settings(max_examples=200)
def test_readj_stops_when_no_move_or_swap_helps(board: Board) -> None:
    start = np.where(board.former == NOWHERE, 0, board.former)
    before = copy_of(board)
    for key, place in enumerate(start):
        before.put(key, int(place))
    assert readj(board, start)
    assert board.penalty_now() <= before.penalty_now()
    reached = board.penalty_now()
    for first, target in itertools.product(range(board.keys), range(board.pairs)):
        for second in [None, *range(board.keys)]:
            if second is not None and board.places[second] != target:
                continue
            if board.places[first] == target:
                continue
            assert after_adjusting(board, first, second, target) >= reached * (1 - 1e-3) - 1e-12


def after_adjusting(board: Board, first: int, second: int | None, target: int) -> float:
    trial = copy_of(board)
    trial.places = board.places.copy()
    if second is not None:
        trial.put(second, int(board.places[first]))
    trial.put(first, target)
    return trial.penalty_now()


class Watched(Board):
    """A board that remembers every ρ it was asked for: readj asks at the start of each round."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen: list[float] = []

    def penalty_now(self) -> float:
        self.seen.append(super().penalty_now())
        return self.seen[-1]


@given(boards())
@settings(max_examples=300)
def test_every_adjustment_lowers_penalty(board: Board) -> None:
    watched = Watched(
        board.loads,
        board.key_loads,
        board.tolerance,
        board.volume,
        board.move_cost,
        board.former,
        board.utility,
        board.ideal_cost,
    )
    readj(watched, np.where(board.former == NOWHERE, 0, board.former))
    assert all(after < before for before, after in itertools.pairwise(watched.seen))


@given(boards())
def test_loads_and_costs_follow_placement(board: Board) -> None:
    base = board.loads.copy()
    readj(board, np.where(board.former == NOWHERE, 0, board.former))
    expected = base.copy()
    for key, place in enumerate(board.places):
        expected[:, place] += board.key_loads[:, key]
    assert board.loads == pytest.approx(expected)
    moved = (board.former != NOWHERE) & (board.former != board.places)
    assert board.spent == pytest.approx(board.move_cost[moved].sum(), abs=1e-9)


@given(boards())
def test_readj_is_idempotent(board: Board) -> None:
    again = copy_of(board)
    readj(board, np.where(board.former == NOWHERE, 0, board.former))
    again.former = board.places.copy()
    readj(again, board.places)
    assert np.array_equal(again.places, board.places)
    assert again.spent == 0


def test_returning_key_lowers_migration_cost() -> None:
    board = board_of([[10.0, 0.0]], [[4.0]], former=[1])
    board.put(0, 0)
    assert board.spent == 4.0
    board.put(0, 1)
    assert board.spent == 0.0


def test_keys_of_equal_volume_swap_when_another_resource_gains() -> None:
    loads = [[1.0, 1.0], [9.0, 1.0]]
    board = board_of(loads, [[3.0, 3.0], [9.0, 1.0]], former=[0, 1])
    readj(board, np.array([0, 1]))
    assert board.places.tolist() == [1, 0]


def test_ties_go_to_least_loaded_pair() -> None:
    # Neither the fullest nor the emptiest pair changes, so the middle ones are equally good.
    board = board_of([[0.0, 50.0, 40.0, 30.0, 100.0]], [[60.0, 1.0]], utility=Utility.UA)
    board.put(0, 0)
    scan_second = board.placing(np.array([1]))[0]
    assert scan_second[1] == scan_second[2]
    two = board_of([[0.0, 50.0, 40.0, 30.0, 100.0]], [[60.0, 1.0]], utility=Utility.UA)
    scan(two)
    assert two.places.tolist() == [0, 3]

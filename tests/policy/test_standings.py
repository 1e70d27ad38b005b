"""Which pairs count at each stage of a change."""

import pytest
from tests.policy.builders import look
from tests.policy.generations import (
    ABANDONED,
    BUILDING,
    CUTTING,
    DONE,
    NEW,
    OLD,
    PLANNED,
    RETIRING,
    leading,
    pair,
)

from tandem.policy.standings import Standings
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import PairStanding

BEFORE = Standings(1, (OLD,), NEW, ())
AFTER = Standings(2, NEW, (), (OLD,))


@pytest.mark.parametrize(
    ("intent", "lead", "expected"),
    [
        (PLANNED, leading(OLD), Standings(1, (OLD,))),
        (BUILDING, leading(OLD, *NEW), BEFORE),
        (BUILDING, None, BEFORE),
        (CUTTING, leading(OLD, *NEW), BEFORE),
        (CUTTING, None, BEFORE),
        (CUTTING, leading(OLD, *NEW, generation=2), AFTER),
        (RETIRING, leading(OLD, *NEW, generation=2), AFTER),
        (RETIRING, None, AFTER),
        (RETIRING, leading(*NEW, generation=2), Standings(2, NEW)),
        (DONE, leading(*NEW, generation=2), Standings(2, NEW)),
        (DONE, leading(*NEW, generation=0), Standings(2, NEW)),
        (ABANDONED, leading(OLD, *NEW), Standings(1, (OLD,))),
    ],
)
def test_generation_of_the_last_header_decides_which_pairs_are_current(
    intent: Intent, lead: LeadReport | None, expected: Standings
) -> None:
    assert Standings.judged(intent, lead) == expected


def test_carried_pair_is_current_in_both_generations() -> None:
    first, second = BUILDING.generations
    kept = first.pairs[0].replace(name="pair-9")
    intent = BUILDING.replace(
        generations=(
            first.replace(pairs=(*first.pairs, kept)),
            second.replace(pairs=(kept, *second.pairs)),
        )
    )
    assert Standings.judged(intent, leading(OLD)).current == (OLD, "pair-9")
    found = Standings.judged(intent.replace(target=2), leading(OLD, generation=2))
    assert (found.current, found.muted) == (("pair-9", *NEW), (OLD,))


def test_pair_that_a_way_back_names_again_is_muted_while_others_are_current() -> None:
    first = CUTTING.generations[0]
    way_back = CUTTING.replace(
        generations=(*CUTTING.generations, first.replace(number=3)), target=3, next_generation=4
    )
    cut = leading(OLD, *NEW, generation=2)
    assert Standings.judged(way_back, cut) == Standings(2, NEW, (), (OLD,))
    back = leading(OLD, *NEW, generation=3)
    assert Standings.judged(way_back, back) == Standings(3, (OLD,), (), NEW)


def test_members_of_pairs_that_no_generation_lists_are_gone() -> None:
    snapshot = look(*pair(OLD), *pair("pair-1"), lead=leading(OLD, "pair-1"))
    assert snapshot.pairs() == (OLD, "pair-1")
    snapshot = look(*pair(OLD), *pair("pair-1"), lead=leading(OLD, "pair-1"), intent=ABANDONED)
    assert snapshot.pairs() == (OLD,)
    assert snapshot.all_pairs() == (OLD, "pair-1")
    assert snapshot.standing("pair-1") is PairStanding.GONE
    assert snapshot.is_current(None)
    assert snapshot.is_changing()


def test_abandoned_change_is_not_under_way() -> None:
    assert look(*pair(OLD), intent=PLANNED).is_changing()
    assert not look(*pair(OLD), intent=ABANDONED).is_changing()

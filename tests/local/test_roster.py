import pytest
from tests.local.pipelines import pipeline

from tandem.local.processes.roster import place_named, roster_of
from tandem.policy.intent import first_intent
from tandem_core.contract.reports import LeadReport, PairReport
from tandem_core.model.states import MemberKind

LISTED = (PairReport("pair-0"), PairReport("pair-1"))


def test_roster_has_standby_merges_and_twin_replicas() -> None:
    asked = pipeline(merges={"count": 2}, pairs={"count": 1}, splits={"count": 1})
    roster = roster_of(first_intent(asked), None, (), spares=1).places()
    assert [place.name for place in roster] == [
        "split-0",
        "pair-0-a",
        "pair-0-b",
        "merge-0",
        "merge-1",
        "merge-2",
        "merge-3",
        "spare-0",
    ]
    assert [place.slot for place in roster if place.kind is MemberKind.MERGE] == [0, 0, 1, 1]
    assert [place_named(place.name) for place in roster] == list(roster)
    alone = first_intent(pipeline(pairs={"count": 2, "replicas": 1}))
    single = roster_of(alone, None, (), spares=0).places()
    assert [p.name for p in single if p.pair is not None] == ["pair-0-a", "pair-1-a"]


def test_roster_keeps_merges_of_slot_until_it_is_sealed() -> None:
    intent = first_intent(pipeline(merges={"count": 2}))
    places = roster_of(intent, None, (), spares=0).places()
    fewer = intent.replace(slots=1)
    ending = LeadReport(term=1, pairs=LISTED, open_slots=(0,), ending_slots=(1,), next_slot=2)
    assert roster_of(fewer, None, places, spares=0).slots == (0, 1)
    assert roster_of(fewer, ending, places, spares=0).slots == (0, 1)
    sealed = ending.replace(ending_slots=())
    assert roster_of(fewer, sealed, places, spares=0).slots == (0,)
    # A number is never used again.
    assert roster_of(intent, sealed, places, spares=0).slots == (0, 2)


def test_roster_keeps_retiring_pair_while_the_lead_lists_it() -> None:
    intent = first_intent(pipeline(pairs={"count": 2}))
    places = roster_of(intent, None, (), spares=0).places()
    (old,) = intent.generations
    left = intent.replace(generations=(old.replace(pairs=old.pairs[:1]),))
    assert roster_of(left, None, places, spares=0).pairs == ("pair-0", "pair-1")
    listing = LeadReport(term=1, pairs=LISTED)
    assert roster_of(left, listing, places, spares=0).pairs == ("pair-0", "pair-1")
    retired = listing.replace(pairs=LISTED[:1])
    assert roster_of(left, retired, places, spares=0).pairs == ("pair-0",)


@pytest.mark.parametrize("name", ["", "split", "split-x", "pair-0-c", "lead-1"])
def test_other_names_are_of_no_place(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a member"):
        place_named(name)

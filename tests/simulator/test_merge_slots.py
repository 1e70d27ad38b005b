"""The ledger's account of merge slots: each kind of violation, and two planted bugs apart."""

import pytest
from tests.simulator.test_ledger import FIRST, KEYS, breaks, header, ledger, write_chunks

from tandem_runtime.protocol.merge import merge_machine
from tandem_runtime.protocol.messages.peers import MergeView
from tandem_runtime.protocol.types import Dealing, Slot
from tandem_simulator.campaign.seeded_bugs import PLANTS
from tandem_simulator.engine.schedule import run_schedule
from tandem_simulator.externals import sinks
from tandem_simulator.externals.shares import generation_of
from tandem_simulator.oracle.ledger import Ledger

BY_TWO = header(1).replace(dealing=1)
DEALING = Dealing(number=1, slots=((0, ("pair-0",)), (1, ("pair-1",))))
NOTHING: tuple[tuple[str, tuple[tuple[object, ...], ...]], ...] = ()


@pytest.fixture
def filled() -> Ledger:
    """Two pairs, of which the first has all keys, and two slots."""
    fresh = ledger()
    fresh.generation_made(generation_of(1, (("pair-0", KEYS), ("pair-1", frozenset()))))
    write_chunks(fresh)
    fresh.dealt.dealing_seen(DEALING, "merge-0a.1")
    for number in (0, 1):
        fresh.dealt.slot_seen(Slot(number=number, first=1), "merge-0a.1")
    fresh.header_seen(BY_TWO, "merge-0a.1")
    return fresh


def test_epoch_is_complete_when_every_slot_has_delivered_it(filled: Ledger) -> None:
    for sink in ("sink-0", "sink-1"):
        filled.opened(sink, 0, 1)
        filled.opened(sink, 1, 1)
    filled.delivered("sink-0", 1, (("pair-0", FIRST),), 0)
    assert filled.dealt.whole == {"sink-0": 0, "sink-1": 0}
    filled.delivered("sink-0", 1, (("pair-1", ()),), 1)
    assert filled.dealt.whole == {"sink-0": 1, "sink-1": 0}
    filled.upserted("sink-1", 1, "pair-0", FIRST[0], 0)
    filled.advanced("sink-1", 1, (("pair-0", FIRST),), 0)
    filled.advanced("sink-1", 1, (("pair-1", ()),), 1)
    assert filled.everywhere() == 1


def test_delivery_of_pair_of_another_slot_is_detected(filled: Ledger) -> None:
    with breaks(2, "foreign-pair"):
        filled.delivered("sink-0", 1, (("pair-0", FIRST), ("pair-1", ())), 0)
    with breaks(2, "foreign-pair"):
        filled.upserted("sink-1", 1, "pair-0", FIRST[0], 1)


def test_slot_delivery_without_its_pair_is_detected(filled: Ledger) -> None:
    with breaks(2, "wrong-pairs"):
        filled.delivered("sink-0", 1, NOTHING, 1)


def test_delivery_of_sealed_slot_is_detected(filled: Ledger) -> None:
    filled.dealt.over.add(1)
    with breaks(2, "sealed-slot"):
        filled.delivered("sink-0", 1, (("pair-1", ()),), 1)


def test_slot_opened_twice_is_detected(filled: Ledger) -> None:
    filled.opened("sink-0", 1, 4)
    assert filled.positions["sink-0", 1] == 3
    with breaks(2, "opened-twice"):
        filled.opened("sink-0", 1, 4)


def test_conflicting_dealings_are_detected(filled: Ledger) -> None:
    with breaks(6, "two-dealings"):
        filled.dealt.dealing_seen(DEALING.replace(slots=((0, ("pair-0", "pair-1")),)), "m")
    with breaks(2, "dealt-twice"):
        filled.dealt.dealing_seen(
            Dealing(number=2, slots=((0, ("pair-0",)), (1, ("pair-0",)))), "m"
        )


def test_header_without_delivering_slot_for_pair_is_detected(filled: Ledger) -> None:
    filled.dealt.header_shown(BY_TWO, ("pair-0", "pair-1"), "m")
    with breaks(1, "not-dealt"):
        filled.dealt.header_shown(BY_TWO, ("pair-2",), "m")
    filled.dealt.slot_seen(Slot(number=1, first=1).ended_at(0), "m")
    with breaks(1, "not-dealt"):
        filled.dealt.header_shown(BY_TWO, ("pair-1",), "m")


def test_changed_slot_end_is_detected(filled: Ledger) -> None:
    filled.dealt.slot_seen(Slot(number=1, first=1).ended_at(4), "m")
    with breaks(6, "slot-changed"):
        filled.dealt.slot_seen(Slot(number=1, first=1).ended_at(5), "m")


def test_seal_alone_excludes_zombie_of_ended_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the two halves of the planted bug the first does nothing wrong without the second."""
    seal = sinks.SimulatedSink.seal
    fenced = found = 0
    with PLANTS["unsealed-slot"].apply():
        deaf = vars(merge_machine)["_HANDLERS"][MergeView]
    handlers = {**vars(merge_machine)["_HANDLERS"], MergeView: deaf}
    monkeypatch.setattr(merge_machine, "_HANDLERS", handlers)
    for number in range(60):
        if fenced and found:
            break
        outcome = run_schedule(1, number)
        assert outcome.violation is None
        fenced += outcome.coverage["deliveries of sealed slots"]
        found += run_schedule(1, number, plant="unsealed-slot").violation is not None
    assert sinks.SimulatedSink.seal is seal
    assert fenced > 0
    assert found > 0


@pytest.mark.parametrize("seed", range(1, 11))
def test_slot_that_delivers_foreign_pair_is_detected(seed: int) -> None:
    found = (run_schedule(seed, number, plant="foreign-slot").violation for number in range(10))
    violation = next(filter(None, found))
    assert violation.kind == "foreign-pair"

"""A merge of one slot among several: its own pairs, barriers, the end of a slot and its seal."""

from tests.protocol.builders import S, generation, header, of, only, sent
from tests.protocol.merge.test_merge_machine import Merge, wants

from tandem_runtime.protocol.effects import Deliver, Effect, Happened, ReadPosition, SealSlot
from tandem_runtime.protocol.messages.peers import MergeReport, SinkPosition
from tandem_runtime.protocol.types import Dealing, Header, Slot

FOUR = generation(1, *"uvxy")
HOLDERS = tuple((pair, (f"{pair}0", f"{pair}1")) for pair in "uvxy")
DEALING = Dealing(number=1, slots=((0, ("u", "x")), (1, ("v", "y"))))
OPEN = (Slot(number=0, first=1), Slot(number=1, first=1))


def of_slot(
    slot: int, *headers: Header, slots: tuple[Slot, ...] = OPEN, position: int = 0, **more: object
) -> Merge:
    """An active merge of a slot that knows its sink's position."""
    merge = Merge(slot=slot)
    show(merge, *headers, slots=slots, **more)
    merge.at(position)
    return merge


def show(
    merge: Merge, *headers: Header, slots: tuple[Slot, ...] = OPEN, **more: object
) -> list[Effect]:
    return merge.view(
        *headers,
        generations=(FOUR,),
        holders=HOLDERS,
        slots=slots,
        dealings=(DEALING,),
        **more,  # type: ignore[arg-type]
    )


def delivered(effects: list[Effect]) -> list[tuple[int, int, tuple[str, ...], bool]]:
    """Slot, epoch, pairs, and whether other slots deliver the rest."""
    found = of(Deliver, effects)
    return [(d.slot, d.epoch, tuple(pair for pair, _ in d.answers), d.shared) for d in found]


def test_slot_delivers_when_its_own_pairs_have_answered() -> None:
    merge = of_slot(1, header(1, dealing=1))
    assert delivered(merge.answer("v0", 1, "v")) == []
    assert delivered(merge.answer("y1", 1, "y")) == [(1, 1, ("v", "y"), True)]


def test_pair_of_another_slot_is_neither_asked_nor_taken() -> None:
    merge = of_slot(1, header(1, dealing=1))
    assert wants(merge.offer("u0", 1, pair="u")) == {}
    assert wants(merge.offer("v0", 1, pair="v")) == {"v0": (1,)}
    (refused,) = of(Happened, merge.answer("u0", 1, "u"))
    assert refused.event == "StaleRefused"
    assert set(merge.machine.answers.taken) == set()


def test_slot_0_delivers_all_pairs_of_undivided_epoch() -> None:
    merge = Merge()
    show(merge, header(1))
    merge.at(0)
    for pair in "uvx":
        assert delivered(merge.answer(f"{pair}0", 1, pair)) == []
    assert delivered(merge.answer("y0", 1, "y")) == [(0, 1, ("u", "v", "x", "y"), False)]


def test_slot_without_pairs_advances_its_position() -> None:
    none = Dealing(number=2, slots=((0, ("u", "v", "x", "y")), (1, ())))
    merge = Merge(slot=1)
    merge.view(header(1, dealing=2), generations=(FOUR,), slots=OPEN, dealings=(none,))
    assert delivered(merge.at(0)) == [(1, 1, (), True)]


def test_position_read_names_slot_and_its_first_epoch() -> None:
    merge = Merge(slot=1)
    effects = show(merge, slots=(OPEN[0], Slot(number=1, first=6)))
    (asked,) = of(ReadPosition, effects)
    assert (asked.slot, asked.first) == (1, 6)


def test_barrier_waits_until_every_slot_delivered_preceding_epoch() -> None:
    first, second = header(1, dealing=1), header(2, dealing=1, barrier=True)
    merge = of_slot(0, first, second)
    for epoch in (1, 2):
        for pair in "ux":
            merge.answer(f"{pair}0", epoch, pair)
    assert delivered(merge.at(1)) == []
    assert delivered(show(merge, delivered=0, recorded=1)) == []
    assert delivered(show(merge, delivered=1, version=(1, 2))) == [(0, 2, ("u", "x"), True)]


def test_ended_slot_delivers_its_last_epoch_and_no_more() -> None:
    ended = (OPEN[0], Slot(number=1, first=1).ended_at(1))
    merge = of_slot(1, header(1, dealing=1), header(2), slots=ended)
    merge.answer("v0", 1, "v")
    assert delivered(merge.answer("y0", 1, "y")) == [(1, 1, ("v", "y"), True)]
    assert delivered(merge.at(1)) == []
    assert of(ReadPosition, show(merge, slots=ended, delivered=5, recorded=1)) == []


def test_header_with_unknown_dealing_is_not_accepted() -> None:  # (i)
    merge = Merge(slot=1)
    merge.view(header(1, dealing=3), generations=(FOUR,), slots=OPEN)
    assert merge.machine.epochs.headers == {}


def test_newest_dealing_and_those_named_by_headers_are_kept() -> None:  # [12]
    later = tuple(DEALING.replace(number=number) for number in (2, 3, 4))
    merge = of_slot(0, header(1, dealing=1))
    merge.view(
        header(2, dealing=3),
        generations=(FOUR,),
        holders=HOLDERS,
        slots=OPEN,
        dealings=(DEALING, *later),
        version=(1, 2),
    )
    for pair in "ux":
        merge.answer(f"{pair}0", 1, pair)
    merge.at(1)
    assert set(merge.machine.epochs.dealings) == {3, 4}


def test_new_term_forgets_dealings() -> None:  # (i)
    merge = of_slot(1, header(1, dealing=1))
    merge.view(generations=(FOUR,), slots=OPEN, version=(2, 1))
    assert merge.machine.epochs.dealings == {}


ENDED = (OPEN[0], OPEN[1], Slot(number=2, first=3).ended_at(4))


def sealing(effects: list[Effect]) -> list[tuple[str, int, int, int]]:
    return [(s.sink, s.slot, s.first, s.last) for s in of(SealSlot, effects)]


def seal_answer(sink: str, *, sealed: bool) -> SinkPosition:
    return SinkPosition(sink=sink, position=4 if sealed else 3, op=1, slot=2, sealed=sealed)


def test_merge_of_lowest_open_slot_seals_ended_slots() -> None:
    merge = Merge(sinks=("s", "t"))
    assert sealing(show(merge, slots=ENDED)) == [("s", 2, 3, 4), ("t", 2, 3, 4)]
    assert sealing(show(Merge(slot=1), slots=ENDED)) == []
    assert sealing(show(Merge(slot=2), slots=ENDED)) == []
    assert sealing(show(Merge(), slots=ENDED, active=False)) == []


def test_merge_of_a_higher_slot_seals_once_lower_slots_have_ended() -> None:
    lower_ended = (Slot(number=0, first=1).ended_at(4), Slot(number=1, first=1))
    assert sealing(show(Merge(slot=1), slots=lower_ended)) == [("s", 0, 1, 4)]


def test_slot_is_reported_sealed_when_every_sink_sealed_it() -> None:
    merge = Merge(sinks=("s", "t"))
    show(merge, slots=ENDED)
    assert merge.tell(seal_answer("t", sealed=False)) == []
    merge.tell(seal_answer("s", sealed=True))
    assert only(MergeReport, merge.machine.tick(S.silence)).sealed == ()
    (report,) = [r for _, r in sent(MergeReport, merge.tell(seal_answer("t", sealed=True)))]
    assert report.sealed == (2,)
    show(merge, version=(1, 2))
    assert only(MergeReport, merge.machine.tick(3 * S.silence)).sealed == ()


def test_premature_seal_is_retried_with_back_off() -> None:
    merge = Merge()
    show(merge, slots=ENDED)
    merge.tell(seal_answer("s", sealed=False))
    assert sealing(merge.machine.tick(S.silence - 1)) == []
    assert sealing(merge.machine.tick(S.silence)) == [("s", 2, 3, 4)]
    # Unanswered, it is asked for ever less often [12].
    assert sealing(merge.machine.tick(3 * S.silence - 1)) == []
    assert sealing(merge.machine.tick(3 * S.silence)) == [("s", 2, 3, 4)]


def test_sealed_slot_is_reported_and_delivers_nothing() -> None:
    merge = of_slot(1, header(1, dealing=1))
    op = merge.machine.sinks["s"].op
    merge.tell(SinkPosition(sink="s", position=0, op=op, slot=1, sealed=True))
    merge.answer("v0", 1, "v")
    assert delivered(merge.answer("y0", 1, "y")) == []
    assert only(MergeReport, merge.machine.tick(S.silence)).sealed == (1,)

"""What the lead decides about merge slots: opened, ended, sealed, and dealt before a header."""

from tests.protocol.builders import (
    G2,
    S,
    generation,
    header,
    intent,
    make_reports,
    merge_report,
    replica_report,
    running_state,
    seated,
    state_of,
)

from tandem_runtime.protocol.lead.epoch_rules import complete_pipeline, cut_epoch
from tandem_runtime.protocol.lead.slot_rules import (
    change_slots,
    deal_pairs,
    dealing_in_force,
    seal_slots,
)
from tandem_runtime.protocol.lead.views import merge_view, replica_view
from tandem_runtime.protocol.log.entries import (
    Completed,
    DataLost,
    Entry,
    GenerationKnown,
    MergeChosen,
    PairsDealt,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Trimmed,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import MergeView, ReplicaView
from tandem_runtime.protocol.types import UNDIVIDED, Dealing, Header, Slot

LATE = 1500
OPENED = SlotOpened(slot=1, first=1, intent_version=1)
TWO_PAIRS = generation(1, "x", "y")


def two_slots(*more: Entry) -> LogState:
    return state_of(OPENED, GenerationKnown(TWO_PAIRS, 1), *more)


def dealt(number: int, *slots: tuple[int, tuple[str, ...]]) -> PairsDealt:
    return PairsDealt(Dealing(number=number, slots=slots))


def opened(slot: int, first: int, version: int = 1) -> SlotOpened:
    return SlotOpened(slot=slot, first=first, intent_version=version)


# --- opening and ending ---------------------------------------------------------------------------


def test_first_slots_open_before_any_merge_reports() -> None:
    reports = make_reports(known=intent(slots=2))
    assert list(change_slots(LogState(), reports, 0)) == [opened(0, 1), opened(1, 1)]
    assert list(change_slots(LogState(), make_reports(), 0)) == []


def test_slot_0_always_exists() -> None:
    assert list(change_slots(LogState(), make_reports(known=intent(slots=0)), 0)) == [opened(0, 1)]


def test_later_slot_opens_when_merge_for_it_reports() -> None:
    log_state = running_state(header(1), header(2))
    waiting = make_reports(known=intent(slots=2, version=2), merges={"m": merge_report(slot=0)})
    assert list(change_slots(log_state, waiting, 0)) == []
    ready = make_reports(known=intent(slots=2, version=2), merges={"m": merge_report(slot=1)})
    assert list(change_slots(log_state, ready, 0)) == [opened(1, 3, version=2)]
    assert list(change_slots(log_state, ready, LATE)) == []


def test_slot_number_is_never_reused() -> None:
    log_state = two_slots(SlotEnded(slot=1, last=0, intent_version=2), SlotSealed(1))
    merges = {"m": merge_report(slot=1), "n": merge_report(slot=3)}
    reports = make_reports(known=intent(slots=3, version=3), merges=merges)
    assert list(change_slots(log_state, reports, 0)) == [opened(3, 1, version=3)]


def test_reducing_slots_ends_highest_at_last_cut_epoch() -> None:
    log_state = two_slots(header(1), header(2))
    reports = make_reports(known=intent(slots=1, version=4))
    assert list(change_slots(log_state, reports, 0)) == [
        SlotEnded(slot=1, last=2, intent_version=4)
    ]


def test_older_intent_or_final_header_changes_no_slots() -> None:
    log_state = two_slots(SlotEnded(slot=1, last=0, intent_version=5))
    reports = make_reports(known=intent(slots=2, version=4), merges={"m": merge_report(slot=2)})
    assert list(change_slots(log_state, reports, 0)) == []
    over = two_slots(header(1, final=True))
    assert list(change_slots(over, make_reports(known=intent(slots=1, version=9)), 0)) == []


# --- dealing --------------------------------------------------------------------------------------


def test_single_slot_needs_no_dealing() -> None:
    assert list(deal_pairs(running_state(), make_reports(), 0)) == []
    assert dealing_in_force(running_state()) == UNDIVIDED


def test_pairs_are_dealt_once_two_slots_are_open() -> None:
    first = dealt(1, (0, ("x",)), (1, ("y",)))
    assert list(deal_pairs(two_slots(), make_reports(), 0)) == [first]
    log_state = two_slots(first)
    assert list(deal_pairs(log_state, make_reports(), 0)) == []
    assert dealing_in_force(log_state) == 1


def test_pairs_of_future_generation_are_dealt_before_cutover() -> None:
    log_state = running_state(OPENED, dealt(1, (0, ("x",)), (1, ())), header(1, dealing=1))
    log_state.apply(GenerationKnown(G2, 2))
    (entry,) = deal_pairs(log_state, make_reports(), 0)
    assert entry == dealt(2, (0, ("x", "y")), (1, ("z",)))
    log_state.apply(entry)
    log_state.apply(header(2, generation=2, dealing=2))
    # Those that only the old generation has are no longer dealt.
    assert list(deal_pairs(log_state, make_reports(), 0)) == [dealt(3, (0, ("y",)), (1, ("z",)))]


def test_dealings_are_kept_while_kept_header_names_them() -> None:
    log_state = two_slots(dealt(1, (0, ("x",)), (1, ("y",))), header(1, dealing=1))
    log_state.apply(dealt(2, (0, ("y",)), (1, ("x",))))
    assert set(log_state.dealings) == {1, 2}
    log_state.apply(Trimmed(1))
    assert set(log_state.dealings) == {2}


def names(log_state: LogState, target: int = 1) -> Header:
    """The next header of a pipeline whose pairs all keep up."""
    reports = make_reports(
        known=intent(*log_state.generations.values(), target=target), delivered=0
    )
    found = list(
        cut_epoch(log_state, reports, S._replace(max_uncommitted=99), since_cut=10**6, term=1)
    )
    assert len(found) == 1
    entry = found[0]
    assert isinstance(entry, Header)
    return entry


def test_header_carries_dealing_and_barrier_when_keys_move_between_slots() -> None:
    log_state = running_state(header(1))
    log_state.raised = True
    assert (names(log_state).dealing, names(log_state).barrier) == (UNDIVIDED, False)
    log_state.apply(OPENED)
    log_state.apply(dealt(1, (0, ("x",)), (1, ())))
    assert (names(log_state).dealing, names(log_state).barrier) == (1, True)
    log_state.apply(names(log_state))
    log_state.raised = True
    assert (names(log_state).dealing, names(log_state).barrier) == (1, False)
    log_state.apply(SlotEnded(slot=1, last=2, intent_version=2))
    assert (names(log_state).dealing, names(log_state).barrier) == (UNDIVIDED, True)


def test_new_generation_sets_barrier_for_divided_slots() -> None:
    log_state = running_state(
        OPENED, GenerationKnown(G2, 2), *seated("y", "y0"), *seated("z", "z0")
    )
    log_state.apply(dealt(1, (0, ("x", "z")), (1, ("y",))))
    log_state.apply(header(1, dealing=1))
    assert names(log_state, target=2).barrier


# --- sealing --------------------------------------------------------------------------------------


def test_ended_slot_is_forgotten_once_reported_sealed() -> None:
    log_state = two_slots(SlotEnded(slot=1, last=2, intent_version=2))
    assert list(seal_slots(log_state, make_reports(merges={"m": merge_report()}), 0)) == []
    reports = make_reports(merges={"m": merge_report(sealed=(1, 7))})
    assert list(seal_slots(log_state, reports, 0)) == [SlotSealed(1)]


def test_ended_slot_is_not_forgotten_because_one_sink_surprised_its_own_merge() -> None:  # [5]
    log_state = two_slots(SlotEnded(slot=1, last=2, intent_version=2))
    reports = make_reports(merges={"m": merge_report(slot=1, sealed=(1,))})
    assert list(seal_slots(log_state, reports, 0)) == []


def test_open_slot_sealed_by_sink_is_reported_lost_once() -> None:
    log_state = two_slots()
    reports = make_reports(merges={"m": merge_report(sealed=(1,))})
    (entry,) = seal_slots(log_state, reports, 0)
    assert isinstance(entry, DataLost)
    assert entry.subject == "slot 1"
    log_state.apply(entry)
    assert list(seal_slots(log_state, reports, 0)) == []


def test_completion_waits_for_seal_of_ended_slot() -> None:
    ended = SlotEnded(slot=1, last=1, intent_version=2)
    log_state = two_slots(header(1), ended, header(2, final=True))
    reports = make_reports(delivered=2)
    reports.delivered[1] = 1
    assert list(complete_pipeline(log_state, reports, 0)) == []
    log_state.apply(SlotSealed(1))
    assert list(complete_pipeline(log_state, reports, 0)) == [Completed()]


# --- telling --------------------------------------------------------------------------------------


def told(log_state: LogState, pair: str, delivered: int = 0) -> tuple[str, ...]:
    reports = make_reports(delivered=delivered)
    reports.delivered[1] = delivered
    report = replica_report(pair=pair)
    view: ReplicaView = replica_view(log_state, reports, (1, 1), f"{pair}0", report, S)
    return view.merges


def test_replica_view_lists_only_merges_that_deliver_its_pair() -> None:
    log_state = two_slots(MergeChosen(0, "m0"), MergeChosen(1, "m1"))
    log_state.apply(dealt(1, (0, ("x",)), (1, ("y",))))
    log_state.apply(header(1, dealing=1))
    assert (told(log_state, "x"), told(log_state, "y")) == (("m0",), ("m1",))
    log_state.apply(dealt(2, (0, ("y",)), (1, ("x",))))
    log_state.apply(header(2, dealing=2))
    assert told(log_state, "x") == ("m0", "m1")
    assert told(log_state, "x", delivered=1) == ("m1",)


def test_merge_view_lists_all_slots_and_needed_dealings() -> None:
    log_state = two_slots(dealt(1, (0, ("x",)), (1, ("y",))), header(1, dealing=1))
    log_state.apply(dealt(2, (0, ("y",)), (1, ("x",))))
    log_state.apply(SlotEnded(slot=1, last=1, intent_version=2))
    log_state.apply(MergeChosen(1, "m1"))
    reports = make_reports(delivered=1)
    view: MergeView = merge_view(log_state, reports, (1, 1), "m1", merge_report(slot=1), 8)
    assert view.active
    assert view.slots == (Slot(number=0, first=1), Slot(number=1, first=1).ended_at(1))
    assert view.next_slot == 2
    assert [dealing.number for dealing in view.dealings] == [1, 2]
    assert (view.delivered, view.recorded) == (0, 0)
    unknown: MergeView = merge_view(log_state, reports, (1, 1), "m9", merge_report(slot=9), 8)
    assert (unknown.active, unknown.recorded) == (False, 0)


def test_nothing_is_dealt_before_first_generation() -> None:
    assert list(deal_pairs(state_of(OPENED), make_reports(), 0)) == []

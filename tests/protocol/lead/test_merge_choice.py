"""Choice of the active merge of each slot."""

from tests.protocol.builders import (
    intent,
    make_reports,
    merge_report,
    state_of,
)
from tests.protocol.lead.seat_reports import LATE

from tandem_runtime.protocol.lead.peer_reports import LastReport
from tandem_runtime.protocol.lead.slot_rules import choose_merges
from tandem_runtime.protocol.log.entries import (
    MergeChosen,
    SlotEnded,
    SlotOpened,
    SlotSealed,
)


def test_each_slot_gets_reporting_merge() -> None:
    reports = make_reports(merges={"m0": merge_report(), "m1": merge_report(slot=1)})
    two = state_of(SlotOpened(slot=1, first=1, intent_version=1))
    assert list(choose_merges(two, reports, 0)) == [MergeChosen(0, "m0"), MergeChosen(1, "m1")]
    assert list(choose_merges(state_of(), reports, 0)) == [MergeChosen(0, "m0")]


def test_ended_slot_has_merge_until_sealed() -> None:
    reports = make_reports(merges={"m1": merge_report(slot=1)})
    opened = SlotOpened(slot=1, first=1, intent_version=1)
    log_state = state_of(opened, SlotEnded(slot=1, last=4, intent_version=2))
    assert list(choose_merges(log_state, reports, 0)) == [MergeChosen(1, "m1")]
    log_state.apply(MergeChosen(1, "m1"))
    log_state.apply(SlotSealed(1))
    assert log_state.merges == {}
    assert list(choose_merges(log_state, reports, 0)) == []


def test_active_merge_stays_while_it_reports() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m0": merge_report(), "m1": merge_report()}, known=intent())
    assert list(choose_merges(log_state, reports, LATE - 1)) == []


def test_silent_or_gone_merge_is_replaced_by_most_recent_reporter() -> None:  # (f)
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m0": merge_report()}, known=intent())
    reports.merges["m1"] = LastReport(1, 10, merge_report())
    reports.merges["m2"] = LastReport(1, 20, merge_report())
    reports.merges["other"] = LastReport(1, 30, merge_report(slot=1))
    assert list(choose_merges(log_state, reports, LATE)) == [MergeChosen(0, "m2")]
    reports.gone = {"m0", "m2"}
    assert list(choose_merges(log_state, reports, 40)) == [MergeChosen(0, "m1")]


def test_leaving_merge_is_replaced_at_once_by_staying_one() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    leaving, staying = merge_report(leaving=True), merge_report()
    reports = make_reports(merges={"m0": leaving, "m1": leaving, "m2": staying}, known=intent())
    assert list(choose_merges(log_state, reports, 0)) == [MergeChosen(0, "m2")]
    reports.merges["m2"] = LastReport(1, 0, leaving)
    assert list(choose_merges(log_state, reports, 0)) == []


def test_merge_not_yet_heard_by_new_lead_stays() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m1": merge_report()}, known=intent())
    assert list(choose_merges(log_state, reports, LATE - 1)) == []


def test_no_merge_is_chosen_when_all_are_silent() -> None:
    log_state = state_of(MergeChosen(0, "m0"))
    reports = make_reports(merges={"m0": merge_report(), "m1": merge_report()}, known=intent())
    assert list(choose_merges(log_state, reports, LATE)) == []

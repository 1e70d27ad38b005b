"""The pipeline in one value."""

from tests.protocol.builders import A1, G1, S, header, intent, record, replica_report, running_state

from tandem_core.contract.intent import Pair
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.lead.lead import Lead
from tandem_runtime.protocol.lead.peer_reports import LastReport
from tandem_runtime.protocol.lead.summary import SeatSummary, Summary, summarise
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    DataLost,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    Lapsed,
    PairsRetired,
    Seated,
    Trimmed,
    Vacated,
)
from tandem_runtime.protocol.log.header_log import HeaderLog
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.states import Bond
from tandem_runtime.protocol.types import LaneId, Mark, ProtocolSettings


def lead_of(log_state: LogState, settings: ProtocolSettings = S) -> Lead:
    stored = HeaderLog({}, 24)
    stored.reset((4, 0), 0, log_state)
    lead = Lead("a", 4, stored, settings, set(), now=0)
    lead.log.bond = Bond.PAIRED
    return lead


def heard(lead: Lead, volume: str, committed: int, at: int = 0) -> None:
    lead.reports.replicas[volume] = LastReport(1, at, replica_report(committed))


def test_summary_reports_positions_and_generations() -> None:
    log_state = running_state(header(1), header(2), header(3, delivered=1), Trimmed(1))
    lead = lead_of(log_state)
    heard(lead, "x0", 3)
    heard(lead, "x1", 2)
    lead.reports.intent = intent()
    lead.reports.delivered = {0: 2}
    found = summarise(lead, 0)
    assert (found.term, found.epoch, found.delivered, found.trim, found.generation) == (
        4,
        3,
        2,
        1,
        1,
    )
    (pair,) = found.pairs
    assert pair.name == "x"
    assert pair.seats == (
        SeatSummary("x0", SeatState.VERIFIED, committed=3, synced=True, silent=False),
        SeatSummary("x1", SeatState.VERIFIED, committed=2, synced=True, silent=False),
    )
    assert (found.lost, found.vulnerable, found.completed) == ((), (), False)


def test_summary_adds_rows_and_rejects_of_all_partitions() -> None:
    marks = {"p": Mark(9, 1, rows=5, rejected=2), "q": Mark(9, 1, rows=7, rejected=1)}
    found = summarise(lead_of(running_state(header(1, marks=marks))), 0)
    assert (found.rows_in, found.rejected) == (12, 3)


def synced(lead: Lead, now: int = 0) -> list[bool]:
    return [seat.synced for pair in summarise(lead, now).pairs for seat in pair.seats]


def test_replica_is_synced_if_verified_reporting_and_near_last_header() -> None:
    lead = lead_of(running_state(header(1), header(2)))
    heard(lead, "x0", 1)
    heard(lead, "x1", 0)
    assert synced(lead) == [True, False]
    assert synced(lead, S.silence) == [False, False]
    record(lead.log_state, Seated("x", 0, "n"))
    heard(lead, "n", 2)
    assert synced(lead) == [False, False]


def vulnerable(lead: Lead) -> tuple[str, ...]:
    return summarise(lead, 0).vulnerable


def test_header_log_without_buddy_is_vulnerable() -> None:  # [8] Vulnerable
    lead = lead_of(running_state())
    assert vulnerable(lead) == ()
    lead.log.bond = Bond.JOINING
    assert vulnerable(lead) == ("header log",)


def test_lane_without_second_copy_is_vulnerable() -> None:  # [8]
    lead = lead_of(running_state(BuddyChanged(A1, 2, None)))
    assert vulnerable(lead) == ("lane a/1",)
    for gone in ("a", "b"):
        lead = lead_of(running_state())
        lead.reports.gone = {gone}
        assert vulnerable(lead) == ("lane a/1",)


def test_pair_with_one_full_member_is_vulnerable() -> None:  # [8]
    for change in (Vacated("x", 1, "x1", ""), Seated("x", 1, "n"), Lapsed("x", 1, "x1")):
        assert vulnerable(lead_of(running_state(change))) == ("x",)


def test_pairs_of_other_generations_are_not_vulnerable() -> None:  # [8]
    second = G1.replace(number=2, pairs=(Pair("v", "v", ("x",)),))
    known = running_state(GenerationKnown(second, 2))
    assert vulnerable(lead_of(known)) == ()
    cut = running_state(
        GenerationKnown(second, 2), header(1, generation=2), Vacated("x", 1, "x1", "")
    )
    assert vulnerable(lead_of(cut)) == ("v",)
    fresh = running_state(GenerationKnown(second, 2), Vacated("x", 1, "x1", ""))
    assert vulnerable(lead_of(fresh)) == ("x",)


def test_summary_omits_retired_pairs_and_lists_losses() -> None:
    second = G1.replace(number=2, pairs=(Pair("v", "v"),))
    log_state = running_state(
        GenerationKnown(second, 2), header(1, generation=2), PairsRetired(("x",))
    )
    log_state.apply(DataLost("p", "why"))
    log_state.apply(LaneClosing(A1))
    log_state.apply(LaneClosed(A1, 0, ()))
    found: Summary = summarise(lead_of(log_state), 0)
    assert [pair.name for pair in found.pairs] == ["v"]
    assert found.lost == ("p",)


class _BusyLead:
    """Volumes that are gone; whoever looks among them finds that a lane was opened meanwhile."""

    def __init__(self) -> None:
        self.log_state = LogState()

    def __contains__(self, volume: object) -> bool:
        self.log_state.apply(LaneOpened(LaneId("late", len(self.log_state.lanes)), None))
        return False


def test_summary_is_consistent_while_lead_changes_concurrently() -> None:
    log_state, busy = running_state(header(1)), _BusyLead()
    lead = lead_of(log_state)
    lead.reports.gone = busy
    busy.log_state = lead.log_state
    before = len(lead.log_state.lanes)
    assert summarise(lead, 0).epoch == 1
    assert len(lead.log_state.lanes) > before

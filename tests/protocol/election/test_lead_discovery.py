"""How a replica or a merge finds the lead, and which views count."""

import pytest
from tests.protocol.builders import MEMBERS, peer

from tandem_runtime.protocol.election.lead_discovery import LeadDiscovery
from tandem_runtime.protocol.log import formats
from tandem_runtime.protocol.log.formats import UnreadableFormat
from tandem_runtime.protocol.messages.peers import MergeView, NotLead
from tandem_runtime.protocol.types import RegisterState


def of(term: int, index: int, log_format: int = 1) -> MergeView:
    """A view of a version; what else it says does not matter."""
    return MergeView(
        version=(term, index),
        active=False,
        delivered=0,
        headers=(),
        generations=(),
        holders=(),
        primaries=(),
        completed=False,
        format=log_format,
    )


def test_newest_log_format_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "NEWEST_FORMAT", 3)
    found = LeadDiscovery(100, 0)
    found.takes(peer("a"), of(2, 5, 3), 0)
    found.takes(peer("b"), of(3, 0, 2), 1)
    assert found.format == 3


def test_view_in_unreadable_format_raises() -> None:
    found = LeadDiscovery(100, 0)
    found.takes(peer("a"), of(2, 5), 0)
    assert not found.takes(peer("b"), of(1, 9, 2), 1)
    with pytest.raises(UnreadableFormat):
        found.takes(peer("a"), of(2, 6, 2), 1)


def lead_discovery() -> LeadDiscovery:
    found = LeadDiscovery(1500, now=0)
    found.discovered(MEMBERS)
    return found


def test_no_target_without_discovered_splits() -> None:
    assert LeadDiscovery(1500, 0).target(5000) == ""


def test_splits_are_polled_in_turn_until_one_answers() -> None:  # (f)
    found = lead_discovery()
    asked = [found.target(at) for at in (10, 1509, 1510, 3010, 4510)]
    assert asked == ["a", "a", "b", "c", "a"]


def test_members_are_sorted_by_name() -> None:
    found = lead_discovery()
    found.discovered(tuple(reversed(MEMBERS)))
    assert found.members == MEMBERS


def test_answering_lead_is_kept_until_silent() -> None:
    found = lead_discovery()
    assert found.takes(peer("c"), of(1, 4), now=1000)
    assert (found.target(1001), found.target(2499)) == ("c", "c")
    assert found.target(2500) == "a"


def test_lead_missing_from_discovery_is_dropped() -> None:
    found = lead_discovery()
    found.takes(peer("gone"), of(1, 4), now=1000)
    assert found.target(1001) == "a"


def test_older_view_is_refused() -> None:  # [11]
    found = lead_discovery()
    assert found.takes(peer("a"), of(2, 5), 0)
    assert not found.takes(peer("b"), of(2, 4), 1)
    assert not found.takes(peer("b"), of(1, 9), 1)
    assert found.takes(peer("a"), of(2, 5), 7)
    assert found.takes(peer("b"), of(3, 0), 9)
    assert (found.lead, found.term, found.version, found.heard) == ("b", 3, (3, 0), 9)


def test_lower_terms_are_refused_after_muster() -> None:  # (i)
    found = lead_discovery()
    found.takes(peer("a"), of(2, 5), 0)
    assert found.muster(peer("c"), 4, 50)
    assert (found.lead, found.term, found.heard, found.version) == ("c", 4, 50, (2, 5))
    assert not found.takes(peer("a"), of(3, 9), 51)
    assert not found.muster(peer("b"), 3, 51)
    assert found.muster(peer("c"), 4, 52)
    assert found.takes(peer("c"), of(4, 0), 53)


def test_member_waits_for_mustering_or_later_lead() -> None:  # (i)
    found = lead_discovery()
    waits = [found.takes(peer("a"), of(3, 9), 50) and found.mustered]
    waits.append(found.muster(peer("c"), 4, 52) and found.mustered)
    waits.append(found.takes(peer("c"), of(4, 0), 53) and found.mustered)
    waits.append(found.muster(peer("c"), 4, 54) and found.mustered)
    assert waits == [False, True, False, False]


def test_not_lead_answer_names_newer_lead() -> None:
    found = lead_discovery()
    found.takes(peer("a"), of(2, 5), 0)
    found.not_lead(NotLead(RegisterState(9, 1, "b", None)))
    assert found.lead == "a"
    found.not_lead(NotLead(RegisterState(9, 2, "", None)))
    assert found.lead == "a"
    found.not_lead(NotLead(RegisterState(9, 2, "c", None)))
    assert found.lead == "c"


def test_older_incarnation_on_same_volume_is_stale() -> None:  # [11] shared-name
    found = lead_discovery()
    assert not found.stale(peer("v", 2))
    assert found.stale(peer("v", 1))
    assert not found.stale(peer("v", 2))
    assert not found.stale(peer("v", 3))
    assert found.stale(peer("v", 2))
    assert not found.stale(peer("w", 0))


def test_reports_are_numbered_consecutively() -> None:  # [11]
    found = lead_discovery()
    assert [found.next_sequence(), found.next_sequence()] == [1, 2]

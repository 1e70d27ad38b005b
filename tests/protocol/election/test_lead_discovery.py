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


def test_the_newest_format_of_the_log_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "NEWEST_FORMAT", 3)
    found = LeadDiscovery(100, 0)
    found.takes(peer("a"), of(2, 5, 3), 0)
    found.takes(peer("b"), of(3, 0, 2), 1)
    assert found.format == 3


def test_a_build_that_does_not_read_the_format_stops_at_a_view_that_counts() -> None:
    found = LeadDiscovery(100, 0)
    found.takes(peer("a"), of(2, 5), 0)
    assert not found.takes(peer("b"), of(1, 9, 2), 1)
    with pytest.raises(UnreadableFormat):
        found.takes(peer("a"), of(2, 6, 2), 1)


def lead_discovery() -> LeadDiscovery:
    found = LeadDiscovery(1500, now=0)
    found.discovered(MEMBERS)
    return found


def test_without_discovery_there_is_nobody_to_report_to() -> None:
    assert LeadDiscovery(1500, 0).target(5000) == ""


def test_members_are_asked_one_after_the_other_until_one_answers() -> None:  # (f)
    found = lead_discovery()
    asked = [found.target(at) for at in (10, 1509, 1510, 3010, 4510)]
    assert asked == ["a", "a", "b", "c", "a"]


def test_members_are_known_by_name_whatever_their_order() -> None:
    found = lead_discovery()
    found.discovered(tuple(reversed(MEMBERS)))
    assert found.members == MEMBERS


def test_a_lead_that_answers_is_kept() -> None:
    found = lead_discovery()
    assert found.takes(peer("c"), of(1, 4), now=1000)
    assert (found.target(1001), found.target(2499)) == ("c", "c")
    assert found.target(2500) == "a"


def test_a_lead_that_discovery_no_longer_lists_is_given_up() -> None:
    found = lead_discovery()
    found.takes(peer("gone"), of(1, 4), now=1000)
    assert found.target(1001) == "a"


def test_an_older_view_is_refused() -> None:  # [11]
    found = lead_discovery()
    assert found.takes(peer("a"), of(2, 5), 0)
    assert not found.takes(peer("b"), of(2, 4), 1)
    assert not found.takes(peer("b"), of(1, 9), 1)
    assert found.takes(peer("a"), of(2, 5), 7)
    assert found.takes(peer("b"), of(3, 0), 9)
    assert (found.lead, found.term, found.version, found.heard) == ("b", 3, (3, 0), 9)


def test_after_a_muster_lower_terms_are_refused() -> None:  # (i)
    found = lead_discovery()
    found.takes(peer("a"), of(2, 5), 0)
    assert found.muster(peer("c"), 4, 50)
    assert (found.lead, found.term, found.heard, found.version) == ("c", 4, 50, (2, 5))
    assert not found.takes(peer("a"), of(3, 9), 51)
    assert not found.muster(peer("b"), 3, 51)
    assert found.muster(peer("c"), 4, 52)
    assert found.takes(peer("c"), of(4, 0), 53)


def test_after_a_muster_its_lead_or_a_later_one_is_waited_for() -> None:  # (i)
    found = lead_discovery()
    waits = [found.takes(peer("a"), of(3, 9), 50) and found.mustered]
    waits.append(found.muster(peer("c"), 4, 52) and found.mustered)
    waits.append(found.takes(peer("c"), of(4, 0), 53) and found.mustered)
    waits.append(found.muster(peer("c"), 4, 54) and found.mustered)
    assert waits == [False, True, False, False]


def test_any_split_says_who_leads() -> None:
    found = lead_discovery()
    found.takes(peer("a"), of(2, 5), 0)
    found.not_lead(NotLead(RegisterState(9, 1, "b", None)))
    assert found.lead == "a"
    found.not_lead(NotLead(RegisterState(9, 2, "", None)))
    assert found.lead == "a"
    found.not_lead(NotLead(RegisterState(9, 2, "c", None)))
    assert found.lead == "c"


def test_older_processes_on_a_volume_are_zombies() -> None:  # [11] shared-name
    found = lead_discovery()
    assert not found.stale(peer("v", 2))
    assert found.stale(peer("v", 1))
    assert not found.stale(peer("v", 2))
    assert not found.stale(peer("v", 3))
    assert found.stale(peer("v", 2))
    assert not found.stale(peer("w", 0))


def test_reports_are_numbered() -> None:  # [11]
    found = lead_discovery()
    assert [found.next_sequence(), found.next_sequence()] == [1, 2]

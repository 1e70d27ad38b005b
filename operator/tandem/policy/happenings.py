"""Events that follow from what members say."""

from collections.abc import Iterator, Mapping

from tandem.policy.controller_state import Failing
from tandem.policy.decisions import Record
from tandem.policy.snapshot import Snapshot
from tandem_core.contract.reports import MemberEvent
from tandem_core.model.states import EventReason

_PASSED_ON = {
    reason.value: reason
    for reason in (
        EventReason.LANE_CLOSED,
        EventReason.GENERATION_CUT,
        EventReason.POISON_EPOCH,
        EventReason.TWINS_DIFFER,
    )
}
"""What members say that is worth an event. What the lead knows for good is not taken from here."""


def lead_of(snapshot: Snapshot, before: str | None) -> str | None:
    """The place of the split that leads; the last known one while none speaks."""
    for member in snapshot.members:
        if snapshot.lead_volume is not None and member.volume == snapshot.lead_volume:
            return member.name
    return before


def waiting_since(snapshot: Snapshot, before: float | None) -> float | None:
    """When the oldest epoch was cut that is not delivered; as last known while no lead speaks."""
    return before if snapshot.lead is None else snapshot.now - snapshot.lead.lag_seconds


def changes_of_lead(before: str | None, after: str | None) -> Iterator[Record]:
    """Another split leads; the first one is no change."""
    if before is not None and after is not None and after != before:
        yield Record(EventReason.LEAD_CHANGED, after, f"{before} led before")


def losses(snapshot: Snapshot, before: frozenset[str]) -> Iterator[Record]:
    """What the lead says is lost, each once."""
    for subject in snapshot.lead.lost if snapshot.lead is not None else ():
        if subject not in before:
            detail = "acknowledged rows or results are lost"
            yield Record(EventReason.DATA_LOST, subject, detail)


def failures(snapshot: Snapshot, before: frozenset[Failing]) -> Iterator[Record]:
    """What is wrong with sources and sinks that was not a look before, each once."""
    for trouble in snapshot.troubles():
        if (trouble.reason, trouble.subject) not in before:
            yield Record(trouble.reason, trouble.subject, trouble.text)


def failing(snapshot: Snapshot) -> frozenset[Failing]:
    """Which sources and sinks do not work, and how."""
    return frozenset((trouble.reason, trouble.subject) for trouble in snapshot.troubles())


def passed_on(
    snapshot: Snapshot, before: Mapping[str, tuple[MemberEvent, ...]]
) -> tuple[list[Record], dict[str, tuple[MemberEvent, ...]]]:
    """Events that members tell, each once, and what they have told by now.

    A member repeats its last events with each answer; new are those it had not told before.
    """
    told = {
        member.volume: before[member.volume]
        for member in snapshot.members
        if member.volume is not None and member.volume in before
    }
    records = []
    for report in (member.report for member in snapshot.members):
        if report is None:
            continue
        known = set(before.get(report.volume, ()))
        told[report.volume] = report.events
        records += [
            Record(_PASSED_ON[each.event], each.subject, each.detail)
            for each in report.events
            if each.event in _PASSED_ON and each not in known
        ]
    return records, told

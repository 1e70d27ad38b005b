"""Events that follow from the reports of members."""

from collections.abc import Iterator, Mapping

from tandem.policy.controller_state import Failing
from tandem.policy.decisions import RecordEvent
from tandem.policy.recovery.processes import describe_exit
from tandem.policy.snapshot import Life, Snapshot
from tandem.policy.status.member_events import FORWARDED, forward_event
from tandem.policy.status.readable import with_member_names
from tandem_core.contract.reports import MemberEvent, Trouble
from tandem_core.model.states import EventReason

_TROUBLES = {
    EventReason.SOURCE_FAILED: ("stream", "cannot be read and is retried"),
    EventReason.SINK_FAILED: ("sink", "cannot be read or written and is retried"),
    EventReason.SINK_REWOUND: ("sink", "has lost delivered epochs and gets no results"),
}
"""The subject of each kind of trouble, and what it means for that subject."""


def lead_of(snapshot: Snapshot, before: str | None) -> str | None:
    """The place of the split that leads; the last known one while none reports."""
    for member in snapshot.members:
        if snapshot.lead_volume is not None and member.volume == snapshot.lead_volume:
            return member.name
    return before


def waiting_since(snapshot: Snapshot, before: float | None) -> float | None:
    """When the oldest undelivered epoch was cut; as last known while no lead reports."""
    return before if snapshot.lead is None else snapshot.now - snapshot.lead.lag_seconds


def lead_changes(
    snapshot: Snapshot, before: str | None, after: str | None
) -> Iterator[RecordEvent]:
    """The event of a change of lead; the first lead is no change."""
    if before is not None and after is not None and after != before:
        detail = f"leads now; {before} {_how_lead_ended(snapshot, before)}"
        yield RecordEvent(EventReason.LEAD_CHANGED, after, detail)


def _how_lead_ended(snapshot: Snapshot, name: str) -> str:
    member = next((each for each in snapshot.members if each.name == name), None)
    if member is None or member.life is Life.ABSENT:
        return "is gone"
    if member.life is Life.ENDED:
        return describe_exit(member)
    if member.life is Life.STARTING:
        return "has restarted"
    if member.silent_since is not None:
        return f"has not answered for {member.silent_for(snapshot.now):.0f} s"
    return "no longer leads"


def losses(
    snapshot: Snapshot, before: frozenset[str], names: Mapping[str, str]
) -> Iterator[RecordEvent]:
    """What the lead reports as lost, each once."""
    for lost in snapshot.lead.lost if snapshot.lead is not None else ():
        if lost not in before:
            subject, detail = describe_loss(lost, snapshot, names)
            yield RecordEvent(EventReason.DATA_LOST, subject, f"{detail}; the pipeline halts")


def describe_loss(lost: str, snapshot: Snapshot, names: Mapping[str, str]) -> tuple[str, str]:
    """What is lost, as a subject and the rest of the sentence; an unknown one is a pair."""
    if lost == "sinks":
        return lost, "have epochs that the header log has lost"
    if lost.startswith("lane "):
        return with_member_names(lost, snapshot, names), "has lost chunks that a pair needs"
    if lost.startswith("slot "):
        is_open = "is open in the header log: part of the log is lost"
        return lost, f"is recorded in a sink as ended, but {is_open}"
    if "/" in lost:
        return f"source partition {lost}", "no longer has rows that are needed"
    return lost, "is lost: no replica holds its state"


def failures(snapshot: Snapshot, before: frozenset[Failing]) -> Iterator[RecordEvent]:
    """Sources and sinks that fail and did not fail before, each once."""
    for trouble in snapshot.troubles():
        if (trouble.reason, trouble.subject) not in before:
            yield RecordEvent(trouble.reason, *describe_trouble(trouble))


def describe_trouble(trouble: Trouble) -> tuple[str, str]:
    """A subject, such as `stream payments`, and the rest of the sentence."""
    kind, meaning = _TROUBLES.get(trouble.reason, ("", trouble.reason.meaning))
    detail = f"{meaning}: {trouble.text}" if trouble.text else meaning
    return f"{kind} {trouble.subject}".lstrip(), detail


def failing(snapshot: Snapshot) -> frozenset[Failing]:
    """Sources and sinks that fail, and how."""
    return frozenset((trouble.reason, trouble.subject) for trouble in snapshot.troubles())


def new_member_events(
    snapshot: Snapshot, before: Mapping[str, tuple[MemberEvent, ...]], names: Mapping[str, str]
) -> tuple[list[RecordEvent], dict[str, tuple[MemberEvent, ...]]]:
    """Events that members report, each once, and what they have reported by now.

    A member repeats its last events with each answer; those not seen before are new. `names` are
    the members by their volumes, also those that are gone.
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
            forward_event(each, snapshot, names)
            for each in report.events
            if each.event in FORWARDED and each not in known
        ]
    return records, told

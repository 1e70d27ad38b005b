"""Events that members report in the protocol's terms, as sentences about members.

The data plane knows volumes and lanes; people know pods and processes.
"""

import re
from collections.abc import Mapping

from tandem.policy.decisions import RecordEvent
from tandem.policy.snapshot import Snapshot
from tandem_core.contract.reports import MemberEvent
from tandem_core.model.states import EventReason, MemberKind

FORWARDED = {
    reason.value: reason
    for reason in (
        EventReason.LANE_CLOSED,
        EventReason.GENERATION_CUT,
        EventReason.POISON_EPOCH,
        EventReason.TWINS_DIFFER,
    )
}
"""Member events that are forwarded. Facts of the header log come from the lead's report."""

_CHECK_QUERY = (
    "check the query for results that depend on more than its rows; "
    "if it has none, check the machines"
)

MOST_GONE = 64
"""How many members that are gone are remembered by name."""

_LANE_END = re.compile(r"(?P<volume>\S+)/(?P<lane>\d+) at (?P<chunk>\d+)")
_PAIR_EPOCH = re.compile(r"(?P<pair>\S+) epoch (?P<epoch>\d+)")


def remember_names(before: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    """Members by volume: those of the snapshot, and those that went away last."""
    there = {each.volume: each.name for each in snapshot.members if each.volume is not None}
    gone = [(volume, name) for volume, name in before.items() if volume not in there]
    return dict(gone[-MOST_GONE:]) | there


def forward_event(event: MemberEvent, snapshot: Snapshot, names: Mapping[str, str]) -> RecordEvent:
    """The event for people; one of an unknown form is passed on as it is."""
    reason = FORWARDED[event.event]
    if reason is EventReason.LANE_CLOSED and (lane := _LANE_END.fullmatch(event.subject)):
        return _lane_closed(lane, snapshot, names)
    if reason is EventReason.TWINS_DIFFER and (at := _PAIR_EPOCH.fullmatch(event.subject)):
        wrong = names.get(event.detail, event.detail)
        copies = f"{wrong} copies its twin's state; delivered rows stay"
        detail = f"got different results for epoch {at['epoch']} from its replicas; {copies}"
        detail = f"{detail}; {_CHECK_QUERY}"
        return RecordEvent(reason, at["pair"], detail)
    if reason is EventReason.GENERATION_CUT:
        detail = f"owns all keys from {event.detail}"
        return RecordEvent(reason, f"generation {event.subject}", detail)
    return RecordEvent(reason, event.subject, event.detail)


def _lane_closed(lane: re.Match[str], snapshot: Snapshot, names: Mapping[str, str]) -> RecordEvent:
    name = names.get(lane["volume"], f"the split on volume {lane['volume']}")
    running = {each.name for each in snapshot.of_kind(MemberKind.SPLIT) if each.running}
    others = sorted(running - {name})
    successor = f"{others[0]} takes" if len(others) == 1 else "other splits take"
    state = "no longer writes to its lane, which" if name in running else "is gone: its lane"
    end = f"{state} ends at chunk {lane['chunk']}"
    detail = f"{end}; {successor} over the source partitions of {name} after that chunk"
    return RecordEvent(EventReason.LANE_CLOSED, name, detail)

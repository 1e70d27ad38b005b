"""Totals since a pipeline began, from counters that restart at zero with every process.

The lead reports rows in and dead letters as totals; rows out come from the sinks. Counters in a
process's memory are added up from one snapshot to the next, so counts between the last snapshot and
the end of a process are missing.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tandem.policy.snapshot import MemberSnapshot, Snapshot
from tandem_core.contract.reports import LeadReport
from tandem_core.model.states import MemberKind
from tandem_core.model.status import Counters

Source = tuple[str, str, int]
"""Counter, volume, and incarnation of the process on it."""

_DUPLICATES, _LATE = "duplicates", "late"


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums, and the last value of each live counter."""

    counters: Counters = field(default_factory=Counters)
    shown: Mapping[Source, int] = field(default_factory=dict)


def add_up(totals: Totals, snapshot: Snapshot, primaries: Collection[str | None]) -> Totals:
    """The totals after one more snapshot.

    `primaries` are volumes. Twins count the same late rows, so only the primary's are added; rows
    that a replica counted before its promotion were added for the former primary.
    """
    shown = counters_of(snapshot.members)
    before = totals.shown
    counters = totals.counters
    duplicates = sum(
        max(0, count - before.get(source, 0))
        for source, count in shown.items()
        if source[0] == _DUPLICATES
    )
    late = sum(
        max(0, count - before.get(source, count))
        for source, count in shown.items()
        if source[0] == _LATE and source[1] in primaries
    )
    lead = snapshot.lead if snapshot.lead is not None else LeadReport(term=0)
    counters = replace(
        counters,
        rows_in=max(counters.rows_in, lead.rows_in),
        rows_out=max(counters.rows_out, _rows_out(snapshot)),
        dead_letters=max(counters.dead_letters, lead.rejected),
        duplicates_dropped=counters.duplicates_dropped + duplicates,
        late_dropped=counters.late_dropped + late,
    )
    return Totals(counters, {**_unheard(before, shown, snapshot), **shown})


def counters_of(members: Iterable[MemberSnapshot]) -> dict[Source, int]:
    """The current values of all counters."""
    shown: dict[Source, int] = {}
    for report in (member.report for member in members):
        if report is not None and report.merge is not None:
            source = (_DUPLICATES, report.volume, report.incarnation)
            shown[source] = report.merge.duplicates_dropped
        if report is not None and report.replica is not None:
            shown[_LATE, report.volume, report.incarnation] = report.replica.late_dropped
    return shown


def _unheard(
    before: Mapping[Source, int], shown: Mapping[Source, int], snapshot: Snapshot
) -> dict[Source, int]:
    """The last values of counters that are not reported now, but may be again."""
    heard = {volume for _, volume, _ in shown}
    kept = {member.volume for member in snapshot.members} - heard
    return {source: count for source, count in before.items() if source[1] in kept}


def _rows_out(snapshot: Snapshot) -> int:
    """Rows in the sinks: the sum over open slots, each by the merge that is ahead.

    Slot 0 includes the rows of slots that have ended.
    """
    rows: dict[int, int] = {}
    for member in snapshot.of_kind(MemberKind.MERGE):
        slot = member.place.slot or 0
        if member.merge is not None and snapshot.delivers(slot):
            rows[slot] = max(rows.get(slot, 0), member.merge.rows_out)
    return sum(rows.values())

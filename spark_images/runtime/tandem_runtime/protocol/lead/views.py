"""The lead's views for splits, replicas and merges: all published facts that concern each."""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.lead.copy_rules import (
    build_epoch,
    build_sources,
    building_epoch,
    pinned_epochs,
)
from tandem_runtime.protocol.lead.lane_rules import has_rows_at_risk, partitions_to_release
from tandem_runtime.protocol.lead.lapse_rules import diverged_volumes
from tandem_runtime.protocol.lead.peer_reports import (
    PeerReports,
    committed,
    delivered_through,
    slot_delivered,
)
from tandem_runtime.protocol.lead.seat_rules import can_carry_pair
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.merge.slots import slot_of_pair
from tandem_runtime.protocol.messages.peers import (
    LaneView,
    MergeReport,
    MergeView,
    Owned,
    ReplicaReport,
    ReplicaView,
    SplitReport,
    SplitView,
    Standing,
    Version,
)
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    UNDIVIDED,
    Dealing,
    Header,
    LaneId,
    Mark,
    ProtocolSettings,
    Seat,
)

_SEATED = Standing.SEATED
"""Enum members bound to globals: class attribute lookup is slow in hot loops."""


def split_view(
    log_state: LogState, reports: PeerReports, version: Version, split: str, report: SplitReport
) -> SplitView:
    """Returns a split's view: its lanes and copies, and the partitions it is to read."""
    told = dict.fromkeys([*(r.lane for r in report.lanes), *(lane for lane, _ in report.copies)])
    mine = {lane for lane in log_state.lanes if lane.split == split} | set(
        log_state.lane_buddies(split)
    )
    lanes = [
        LaneView(lane, s.buddy, s.view, s.state, s.reach, s.last, s.trimmed)
        for lane, s in log_state.lanes.items()
        if lane in told or lane in mine
    ]
    owned = [
        Owned(
            partition,
            lane,
            log_state.marks.get(partition, Mark(0, BEGINNING_OF_TIME)),
            log_state.tenures[partition],
        )
        for partition, lane in log_state.owners.items()
        if lane.split == split
    ]
    release = partitions_to_release(log_state, reports).get(split)
    streams = reports.intent.streams if reports.intent else ()
    return SplitView(
        version=version,
        lanes=tuple(lanes),
        forgotten=tuple(lane for lane in told if lane not in log_state.lanes),
        owned=tuple(owned),
        release=(release,) if release else (),
        opened=log_state.lane_numbers.get(split, 0),
        leaving=tuple(v for v, heard in reports.splits.items() if heard.report.leaving),
        streams=tuple((p, s.idle_timeout) for s in streams for p in s.partitions),
        completed=log_state.completed,
        at_risk=has_rows_at_risk(log_state, reports),
    )


def replica_view(
    log_state: LogState,
    reports: PeerReports,
    version: Version,
    volume: str,
    report: ReplicaReport,
    settings: ProtocolSettings,
) -> ReplicaView:
    """Returns a replica's view: its standing, where to copy from, the next headers."""
    found = log_state.seat_of(volume)
    standing = _standing(log_state, found[2] if found else None, report)
    headers: tuple[Header, ...] = ()
    source: tuple[tuple[str, ...], ...] = ()
    epoch: int | None = None
    limit = settings.headers_per_view
    delivered = delivered_through(log_state, reports)
    if found and standing is _SEATED:
        if found[2].verified or report.verified:
            # It is to replace headers of another history, from its last commit on.
            known = log_state.digest_of(report.have) == report.have_digest
            headers = _headers_after(log_state, report.have if known else report.committed, limit)
            source = _far_ahead(log_state, reports, found[0], found[1], settings.skips_beyond)
        else:
            source, epoch = _source(log_state, reports, found[0], found[1])
    return ReplicaView(
        version=version,
        format=log_state.format,
        standing=standing,
        source=source,
        source_epoch=epoch,
        headers=headers,
        generations=_named(log_state, headers),
        lanes=_copies(log_state, _headers_after(log_state, report.committed, limit)),
        trim=log_state.trim,
        delivered=delivered,
        merges=_merges_of(log_state, report.pair, delivered),
        calls=log_state.calls,
        pins=pinned_epochs(log_state, reports, report.pair),
    )


def _merges_of(log_state: LogState, pair: str, delivered: int) -> tuple[str, ...]:
    """Returns the active merges that deliver for a pair, by every dealing still in use."""
    if len(log_state.slots) <= 1:
        return tuple(log_state.merges[slot] for slot in sorted(log_state.merges))
    numbers = {header.dealing for epoch, header in log_state.headers.items() if epoch > delivered}
    numbers.add(max(log_state.dealings, default=UNDIVIDED))
    numbers.add(log_state.dealing)
    slots = {slot_of_pair(log_state.dealings, n, pair) for n in numbers if _knows(log_state, n)}
    return tuple(log_state.merges[slot] for slot in sorted(log_state.merges) if slot in slots)


def _knows(log_state: LogState, dealing: int) -> bool:
    return dealing == UNDIVIDED or dealing in log_state.dealings


def _standing(log_state: LogState, seat: Seat | None, report: ReplicaReport) -> Standing:
    if log_state.completed:
        return Standing.COMPLETED
    if report.pair in log_state.retired:
        return Standing.RETIRED
    if seat is not None:
        too_old = report.verified and seat.joins and report.committed < seat.hold
        return Standing.DISPLACED if seat.lapsed or too_old else _SEATED
    return Standing.WAITING if report.fresh else Standing.DISPLACED


def _source(
    log_state: LogState, reports: PeerReports, pair: str, number: int
) -> tuple[tuple[tuple[str, ...], ...], int | None]:
    """Returns where a joiner copies its state from, and at which epoch.

    Its twin; else the empty state, while every row since the beginning is still stored; else the
    pairs that owned its keys before, at the epoch at which it copies them already. No source yet:
    (), None.
    """
    twin = log_state.seats[pair][1 - number]
    if twin is not None and twin.verified:
        return ((twin.volume,),), None
    if log_state.trim == 0:
        return (), 0
    sources = build_sources(log_state, pair)
    if not sources:
        return (), None
    # Primaries come last: the reduction of state by key costs CPU.
    primaries = {volume for _, volume in reports.intent.primaries} if reports.intent else set()
    groups = tuple(tuple(sorted(group, key=primaries.__contains__)) for group in sources)
    seat = log_state.seats[pair][number]
    under_way = building_epoch(seat, reports) if seat is not None else None
    epoch = under_way or build_epoch(log_state, reports, pair)
    return ((), None) if epoch is None else (groups, epoch)


def _far_ahead(
    log_state: LogState, reports: PeerReports, pair: str, number: int, limit: int
) -> tuple[tuple[str, ...], ...]:
    """Returns the twin of a full member, if it is far ahead, reports, and gave no wrong answer.

    A view answers a report, so the twin's silence is measured up to that report.
    """
    seat, twin = log_state.seats[pair][number], log_state.seats[pair][1 - number]
    if (
        seat is None
        or twin is None
        or not can_carry_pair(twin)
        or twin.volume in diverged_volumes(reports)
    ):
        return ()
    if committed(twin, reports) - committed(seat, reports) <= limit:
        return ()
    silent = reports.last_word(seat.volume) - reports.last_word(twin.volume) >= reports.silence
    return () if silent else ((twin.volume,),)


def merge_view(
    log_state: LogState,
    reports: PeerReports,
    version: Version,
    volume: str,
    report: MergeReport,
    limit: int,
) -> MergeView:
    """Returns a merge's view: whether it delivers, the headers, and which replicas may answer."""
    headers = _headers_after(log_state, max(report.have, log_state.trim), limit)
    slot = log_state.slots.get(report.slot)
    return MergeView(
        version=version,
        format=log_state.format,
        active=slot is not None and log_state.merges.get(report.slot) == volume,
        delivered=delivered_through(log_state, reports),
        headers=headers,
        generations=_named(log_state, headers),
        holders=tuple(
            (pair, tuple(seat.volume for seat in seats if seat is not None))
            for pair, seats in log_state.seats.items()
        ),
        primaries=reports.intent.primaries if reports.intent else (),
        completed=log_state.completed,
        recorded=slot_delivered(log_state, reports, report.slot),
        slots=tuple(log_state.slots[number] for number in sorted(log_state.slots)),
        next_slot=log_state.next_slot,
        dealings=_dealings(log_state, headers),
    )


def _dealings(log_state: LogState, headers: tuple[Header, ...]) -> tuple[Dealing, ...]:
    """Returns the dealings that headers name, and the newest."""
    if not log_state.dealings:
        return ()
    numbers = {header.dealing for header in headers} | {max(log_state.dealings)}
    return tuple(log_state.dealings[n] for n in sorted(numbers) if n in log_state.dealings)


def _headers_after(log_state: LogState, epoch: int, limit: int) -> tuple[Header, ...]:
    if epoch >= log_state.epoch:
        return ()
    last = min(log_state.epoch, epoch + limit)
    return tuple(log_state.headers[e] for e in range(epoch + 1, last + 1) if e in log_state.headers)


def _named(log_state: LogState, headers: tuple[Header, ...]) -> tuple[Generation, ...]:
    if not headers:
        return ()
    return tuple(
        log_state.generations[number] for number in sorted({h.generation for h in headers})
    )


def _copies(
    log_state: LogState, headers: tuple[Header, ...]
) -> tuple[tuple[LaneId, tuple[str, ...]], ...]:
    """Returns the splits that have the chunks of some headers, by lane."""
    if not headers:
        return ()
    lanes = dict.fromkeys(span.lane for header in headers for span in header.spans)
    copies = []
    for lane in lanes:
        buddy = log_state.lanes[lane].buddy
        copies.append((lane, (lane.split, buddy) if buddy else (lane.split,)))
    return tuple(copies)

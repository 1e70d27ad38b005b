"""What the lead tells each kind of peer: only what is published, and all of it that matters."""

from __future__ import annotations

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.lead.lane_rules import releases, rows_at_risk
from tandem_runtime.protocol.lead.peer_reports import (
    Hearsay,
    committed,
    delivered_through,
    slot_delivered,
)
from tandem_runtime.protocol.lead.seat_rules import build_epoch, build_sources, carries, struck
from tandem_runtime.protocol.log.log_state import Book
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
    Seat,
    Settings,
)

_SEATED = Standing.SEATED
"""Members at hand: looking one up on its class takes long in hot loops."""


def split_view(
    book: Book, hear: Hearsay, version: Version, split: str, report: SplitReport
) -> SplitView:
    """The lead's word to a split: its lanes and copies, and what it is to read."""
    told = dict.fromkeys([*(r.lane for r in report.lanes), *(lane for lane, _ in report.copies)])
    mine = {lane for lane in book.lanes if lane.split == split} | set(book.lane_buddies(split))
    lanes = [
        LaneView(lane, s.buddy, s.view, s.state, s.reach, s.last, s.trimmed)
        for lane, s in book.lanes.items()
        if lane in told or lane in mine
    ]
    owned = [
        Owned(
            partition,
            lane,
            book.marks.get(partition, Mark(0, BEGINNING_OF_TIME)),
            book.tenures[partition],
        )
        for partition, lane in book.owners.items()
        if lane.split == split
    ]
    release = releases(book, hear).get(split)
    streams = hear.intent.streams if hear.intent else ()
    return SplitView(
        version=version,
        lanes=tuple(lanes),
        forgotten=tuple(lane for lane in told if lane not in book.lanes),
        owned=tuple(owned),
        release=(release,) if release else (),
        opened=book.lane_numbers.get(split, 0),
        leaving=tuple(v for v, heard in hear.splits.items() if heard.report.leaving),
        streams=tuple((p, s.idle_timeout) for s in streams for p in s.partitions),
        completed=book.completed,
        at_risk=rows_at_risk(book, hear),
    )


def replica_view(
    book: Book,
    hear: Hearsay,
    version: Version,
    volume: str,
    report: ReplicaReport,
    settings: Settings,
) -> ReplicaView:
    """The lead's word to a replica: its standing, where to copy from, the next headers."""
    found = book.seat_of(volume)
    standing = _standing(book, found[2] if found else None, report)
    headers: tuple[Header, ...] = ()
    source: tuple[tuple[str, ...], ...] = ()
    epoch: int | None = None
    limit = settings.headers_per_view
    delivered = delivered_through(book, hear)
    if found and standing is _SEATED:
        if found[2].verified or report.verified:
            # What it has of another history it is to replace, from its last commit on.
            known = book.digest_of(report.have) == report.have_digest
            headers = _headers_after(book, report.have if known else report.committed, limit)
            source = _far_ahead(book, hear, found[0], found[1], settings.skips_beyond)
        else:
            source, epoch = _source(book, hear, found[0], found[1])
    return ReplicaView(
        version=version,
        format=book.format,
        standing=standing,
        source=source,
        source_epoch=epoch,
        headers=headers,
        generations=_named(book, headers),
        lanes=_copies(book, _headers_after(book, report.committed, limit)),
        trim=book.trim,
        delivered=delivered,
        merges=_merges_of(book, report.pair, delivered),
        calls=book.calls,
    )


def _merges_of(book: Book, pair: str, delivered: int) -> tuple[str, ...]:
    """The active merges that deliver for a pair, by every dealing that still matters to it."""
    if len(book.slots) <= 1:
        return tuple(book.merges[slot] for slot in sorted(book.merges))
    numbers = {header.dealing for epoch, header in book.headers.items() if epoch > delivered}
    numbers.add(max(book.dealings, default=UNDIVIDED))
    numbers.add(book.dealing)
    slots = {slot_of_pair(book.dealings, n, pair) for n in numbers if _knows(book, n)}
    return tuple(book.merges[slot] for slot in sorted(book.merges) if slot in slots)


def _knows(book: Book, dealing: int) -> bool:
    return dealing == UNDIVIDED or dealing in book.dealings


def _standing(book: Book, seat: Seat | None, report: ReplicaReport) -> Standing:
    if book.completed:
        return Standing.COMPLETED
    if report.pair in book.retired:
        return Standing.RETIRED
    if seat is not None:
        too_old = report.verified and seat.joins and report.committed < seat.hold
        return Standing.DISPLACED if seat.lapsed or too_old else _SEATED
    return Standing.WAITING if report.fresh else Standing.DISPLACED


def _source(
    book: Book, hear: Hearsay, pair: str, number: int
) -> tuple[tuple[tuple[str, ...], ...], int | None]:
    """Where a joiner's state comes from.

    Its twin; else nothing at all, while every row since the beginning is still there; else the
    pairs that owned its keys before. No source yet: (), None.
    """
    twin = book.seats[pair][1 - number]
    if twin is not None and twin.verified:
        return ((twin.volume,),), None
    if book.trim == 0:
        return (), 0
    groups = build_sources(book, pair)
    epoch = build_epoch(book, hear, pair) if groups else None
    return ((), None) if epoch is None else (groups, epoch)


def _far_ahead(
    book: Book, hear: Hearsay, pair: str, number: int, limit: int
) -> tuple[tuple[str, ...], ...]:
    """The twin of a full member, if it is far ahead, speaks, and gave no wrong answer.

    A view answers a report, so how long ago the twin spoke is told by how long before that it did.
    """
    seat, twin = book.seats[pair][number], book.seats[pair][1 - number]
    if seat is None or twin is None or not carries(twin) or twin.volume in struck(hear):
        return ()
    if committed(twin, hear) - committed(seat, hear) <= limit:
        return ()
    silent = hear.last_word(seat.volume) - hear.last_word(twin.volume) >= hear.silence
    return () if silent else ((twin.volume,),)


def merge_view(
    book: Book, hear: Hearsay, version: Version, volume: str, report: MergeReport, limit: int
) -> MergeView:
    """The lead's word to a merge: whether it delivers, the headers, and who may answer."""
    headers = _headers_after(book, max(report.have, book.trim), limit)
    slot = book.slots.get(report.slot)
    return MergeView(
        version=version,
        format=book.format,
        active=slot is not None and book.merges.get(report.slot) == volume,
        delivered=delivered_through(book, hear),
        headers=headers,
        generations=_named(book, headers),
        holders=tuple(
            (pair, tuple(seat.volume for seat in seats if seat is not None))
            for pair, seats in book.seats.items()
        ),
        primaries=hear.intent.primaries if hear.intent else (),
        completed=book.completed,
        recorded=slot_delivered(book, hear, report.slot),
        slots=tuple(book.slots[number] for number in sorted(book.slots)),
        next_slot=book.next_slot,
        dealings=_dealings(book, headers),
    )


def _dealings(book: Book, headers: tuple[Header, ...]) -> tuple[Dealing, ...]:
    """The dealings that headers name, and the newest."""
    if not book.dealings:
        return ()
    numbers = {header.dealing for header in headers} | {max(book.dealings)}
    return tuple(book.dealings[n] for n in sorted(numbers) if n in book.dealings)


def _headers_after(book: Book, epoch: int, limit: int) -> tuple[Header, ...]:
    if epoch >= book.epoch:
        return ()
    last = min(book.epoch, epoch + limit)
    return tuple(book.headers[e] for e in range(epoch + 1, last + 1) if e in book.headers)


def _named(book: Book, headers: tuple[Header, ...]) -> tuple[Generation, ...]:
    if not headers:
        return ()
    return tuple(book.generations[number] for number in sorted({h.generation for h in headers}))


def _copies(book: Book, headers: tuple[Header, ...]) -> tuple[tuple[LaneId, tuple[str, ...]], ...]:
    """Who has the chunks that headers speak of."""
    if not headers:
        return ()
    lanes = dict.fromkeys(span.lane for header in headers for span in header.spans)
    copies = []
    for lane in lanes:
        buddy = book.lanes[lane].buddy
        copies.append((lane, (lane.split, buddy) if buddy else (lane.split,)))
    return tuple(copies)

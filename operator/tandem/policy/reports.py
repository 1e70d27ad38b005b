"""What members say of themselves, as typed data.

A member answers `/state` with a JSON document. What is missing in it, or is of another type, counts
as not said: an observer must not fail because a member is of another version.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.model.states import EventReason, SinkClass

MOST_EVENTS = 50
"""Events that a member repeats in each answer."""


@dataclass(frozen=True, slots=True)
class SeatReport:
    """A replica as the lead knows it."""

    volume: str
    verified: bool = False
    lapsed: bool = False
    committed: int = 0
    synced: bool = False
    silent: bool = False

    @property
    def full(self) -> bool:
        """Whether it holds the pair's state and counts for it."""
        return self.verified and not self.lapsed


@dataclass(frozen=True, slots=True)
class PairReport:
    """A pair and its seats as the lead knows them."""

    name: str
    seats: tuple[SeatReport, ...] = ()


@dataclass(frozen=True, slots=True)
class LeadReport:
    """The pipeline as the lead knows it."""

    term: int
    epoch: int = 0
    delivered: int = 0
    generation: int = 0
    rows_in: int = 0
    rejected: int = 0
    lag_seconds: float = 0.0
    pairs: tuple[PairReport, ...] = ()
    lost: tuple[str, ...] = ()
    vulnerable: tuple[str, ...] = ()
    completed: bool = False
    merges: tuple[tuple[int, str], ...] = ()
    """(slot, volume of the active merge)."""

    def seats_of(self, pair: str) -> tuple[SeatReport, ...]:
        """The seats of a pair; none of a pair that it does not know."""
        return next((known.seats for known in self.pairs if known.name == pair), ())

    def seat(self, volume: str | None) -> SeatReport | None:
        """The seat on which a volume sits."""
        seats = (seat for pair in self.pairs for seat in pair.seats)
        return next((seat for seat in seats if seat.volume == volume), None)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a source or a sink from working at the moment."""

    reason: EventReason
    subject: str
    """The stream or the sink."""
    message: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """What is wrong and what would help."""
        return "; ".join(part for part in (self.message, self.hint) if part)


@dataclass(frozen=True, slots=True)
class SplitReport:
    """A split of itself."""

    rows_per_second: float = 0.0
    lead: LeadReport | None = None
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """A replica or a spare of itself."""

    state: str = "booting"
    committed: int = 0
    verified: bool = False
    late_dropped: int = 0
    pair: str | None = None
    """The pair that it belongs to; none for a spare that was given none yet."""

    @property
    def warm(self) -> bool:
        """Whether its driver is up."""
        return self.state != "booting"


@dataclass(frozen=True, slots=True)
class SinkReport:
    """A sink as a merge knows it."""

    name: str
    delivery: SinkClass
    position: int = 0


@dataclass(frozen=True, slots=True)
class MergeReport:
    """A merge of itself."""

    active: bool = False
    delivered: int = 0
    rows_out: int = 0
    duplicates_dropped: int = 0
    sinks: tuple[SinkReport, ...] = ()
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that a member says has happened."""

    at_ms: int
    event: str
    subject: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MemberReport:
    """One answer of a member."""

    volume: str
    incarnation: int
    part: SplitReport | ReplicaReport | MergeReport | None = None
    happened: tuple[Happening, ...] = ()

    @property
    def lead(self) -> LeadReport | None:
        """What it says as the lead, if it is one."""
        return self.part.lead if isinstance(self.part, SplitReport) else None

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What it says is wrong with sources or sinks."""
        return self.part.troubles if isinstance(self.part, SplitReport | MergeReport) else ()

    @property
    def replica(self) -> ReplicaReport | None:
        """What it says as a replica."""
        return self.part if isinstance(self.part, ReplicaReport) else None

    @property
    def merge(self) -> MergeReport | None:
        """What it says as a merge."""
        return self.part if isinstance(self.part, MergeReport) else None


def read_report(document: object) -> MemberReport | None:
    """Make a report of a parsed `/state` answer; None if it does not say whose it is."""
    if not isinstance(document, Mapping) or not isinstance(document.get("volume"), str):
        return None
    return MemberReport(
        volume=document["volume"],
        incarnation=_whole(document, "incarnation"),
        part=_part(document),
        happened=tuple(
            Happening(
                _whole(each, "at_ms"),
                _text(each, "event"),
                _text(each, "subject"),
                _text(each, "detail"),
            )
            for each in _mappings(document, "events")
        )[-MOST_EVENTS:],
    )


def _part(document: Mapping[str, object]) -> SplitReport | ReplicaReport | MergeReport | None:
    split, replica, merge = (_mapping(document, name) for name in ("split", "replica", "merge"))
    if split is not None:
        lead = _mapping(split, "lead")
        return SplitReport(
            rows_per_second=_number(split, "rows_per_second"),
            lead=None if lead is None else _lead(lead),
            troubles=_troubles(split),
        )
    if replica is not None:
        return ReplicaReport(
            state=_text(replica, "state") or "booting",
            committed=_whole(replica, "committed"),
            verified=replica.get("verified") is True,
            late_dropped=_whole(replica, "late_dropped"),
            pair=_text(replica, "pair") or None,
        )
    return None if merge is None else _merge(merge)


def _lead(lead: Mapping[str, object]) -> LeadReport:
    merges = _mapping(lead, "merges") or {}
    return LeadReport(
        term=_whole(lead, "term"),
        epoch=_whole(lead, "epoch"),
        delivered=_whole(lead, "delivered"),
        generation=_whole(lead, "generation"),
        rows_in=_whole(lead, "rows_in"),
        rejected=_whole(lead, "rejected"),
        lag_seconds=_number(lead, "lag_seconds"),
        pairs=tuple(_pair(pair) for pair in _mappings(lead, "pairs")),
        lost=_texts(lead, "lost"),
        vulnerable=_texts(lead, "vulnerable"),
        completed=lead.get("completed") is True,
        merges=tuple(
            (int(slot), volume)
            for slot, volume in merges.items()
            if slot.isdecimal() and isinstance(volume, str)
        ),
    )


def _pair(pair: Mapping[str, object]) -> PairReport:
    return PairReport(
        name=_text(pair, "name"),
        seats=tuple(
            SeatReport(
                volume=_text(seat, "volume"),
                verified=seat.get("verified") is True,
                lapsed=seat.get("lapsed") is True,
                committed=_whole(seat, "committed"),
                synced=seat.get("synced") is True,
                silent=seat.get("silent") is True,
            )
            for seat in _mappings(pair, "seats")
        ),
    )


def _merge(merge: Mapping[str, object]) -> MergeReport:
    sinks = _mapping(merge, "sinks") or {}
    return MergeReport(
        active=merge.get("active") is True,
        delivered=_whole(merge, "delivered"),
        rows_out=_whole(merge, "rows_out"),
        duplicates_dropped=_whole(merge, "duplicates_dropped"),
        sinks=tuple(
            SinkReport(name, SinkClass(_text(sink, "class")), _whole(sink, "position"))
            for name in sinks
            if (sink := _mapping(sinks, name)) is not None and _text(sink, "class") in _CLASSES
        ),
        troubles=_troubles(merge),
    )


def _troubles(part: Mapping[str, object]) -> tuple[Trouble, ...]:
    return tuple(
        Trouble(
            EventReason(reason),
            _text(each, "subject"),
            _text(each, "message"),
            _text(each, "hint"),
        )
        for each in _mappings(part, "troubles")
        if (reason := _text(each, "reason")) in _TROUBLES
    )


_CLASSES = frozenset(word.value for word in SinkClass)
_TROUBLES = frozenset(
    word.value
    for word in (EventReason.SOURCE_FAILED, EventReason.SINK_FAILED, EventReason.SINK_REWOUND)
)


def _mapping(document: Mapping[str, object], name: str) -> Mapping[str, object] | None:
    value = document.get(name)
    return value if isinstance(value, Mapping) else None


def _mappings(document: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = document.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _texts(document: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = document.get(name)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _text(document: Mapping[str, object], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _number(document: Mapping[str, object], name: str) -> float:
    value = document.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return 0.0
    return max(0.0, float(value))


def _whole(document: Mapping[str, object], name: str) -> int:
    value = document.get(name)
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0

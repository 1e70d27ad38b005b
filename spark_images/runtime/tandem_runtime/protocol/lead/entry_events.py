"""Events of published log entries, by which operators, metrics and tests see decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tandem_runtime.protocol.effects import Effect, Happened
from tandem_runtime.protocol.log.entries import (
    Completed,
    DataLost,
    Entry,
    FormatRaised,
    GenerationGivenUp,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LaneResumed,
    LapseCalled,
    Lapsed,
    LapseDropped,
    MergeChosen,
    PairsDealt,
    PairsRetired,
    RetirementCalled,
    Seated,
    SlotEnded,
    SlotOpened,
    SlotSealed,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.types import Header


def describe_entry(entry: Entry, generation: int, term: int) -> Iterator[Effect]:
    """Returns the events of a published entry, for status, events and metrics."""
    name = type(entry).__name__
    if isinstance(entry, Header):
        yield Happened("HeaderPublished", str(entry.epoch), epoch=entry.epoch, term=term)
        if generation and entry.generation != generation:
            number, detail = str(entry.generation), f"epoch {entry.epoch}"
            yield Happened("GenerationCut", number, detail, epoch=entry.epoch, term=term)
    elif (describe := _DESCRIBED.get(type(entry))) is not None:
        yield Happened(name, describe(entry), epoch=_epoch(entry), term=term)


def _epoch(entry: Entry) -> int | None:
    """Returns the epoch that a merge slot begins or ends with, or the trim point."""
    match entry:
        case SlotOpened():
            return entry.first
        case SlotEnded():
            return entry.last
        case Trimmed():
            return entry.epoch
        case _:
            return None


def _lane(entry: LaneOpened | LaneClosing | LaneResumed | LaneClosed) -> str:
    return f"{entry.lane.split}/{entry.lane.number}"


def _seat(entry: Seated | Verified | Vacated | LapseCalled | LapseDropped | Lapsed) -> str:
    return f"{entry.pair} seat {entry.seat}: {entry.volume}"


_DESCRIBED: dict[type, Callable[..., str]] = {
    LaneOpened: _lane,
    LaneClosing: _lane,
    LaneResumed: _lane,
    LaneClosed: lambda entry: f"{_lane(entry)} at {entry.last}",
    Seated: _seat,
    Verified: _seat,
    Vacated: _seat,
    LapseCalled: _seat,
    LapseDropped: _seat,
    Lapsed: _seat,
    MergeChosen: lambda entry: f"slot {entry.slot}: {entry.volume}",
    SlotOpened: lambda entry: f"slot {entry.slot} from epoch {entry.first}",
    SlotEnded: lambda entry: f"slot {entry.slot} through epoch {entry.last}",
    SlotSealed: lambda entry: f"slot {entry.slot}",
    PairsDealt: lambda entry: f"dealing {entry.dealing.number}",
    GenerationKnown: lambda entry: f"generation {entry.generation.number}",
    GenerationGivenUp: lambda entry: f"generation {entry.number}",
    RetirementCalled: lambda _: "",
    PairsRetired: lambda entry: " ".join(entry.pairs),
    DataLost: lambda entry: f"{entry.subject}: {entry.why}",
    Completed: lambda _: "",
    FormatRaised: lambda entry: str(entry.format),
    Trimmed: lambda entry: str(entry.epoch),
}

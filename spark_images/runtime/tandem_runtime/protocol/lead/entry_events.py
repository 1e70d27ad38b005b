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


def describe_entry(entry: Entry, generation: int) -> Iterator[Effect]:
    """Returns the events of a published entry, for status, events and metrics."""
    name = type(entry).__name__
    if isinstance(entry, Header):
        yield Happened("HeaderPublished", str(entry.epoch))
        if generation and entry.generation != generation:
            yield Happened("GenerationCut", str(entry.generation), f"epoch {entry.epoch}")
    elif (describe := _DESCRIBED.get(type(entry))) is not None:
        yield Happened(name, describe(entry))


def _lane(entry: LaneOpened | LaneClosing | LaneResumed | LaneClosed) -> str:
    return f"{entry.lane.split}/{entry.lane.number}"


def _seat(entry: Seated | Verified | Vacated | LapseCalled | LapseDropped | Lapsed) -> str:
    return f"{entry.pair}/{entry.seat} {entry.volume}"


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
    MergeChosen: lambda entry: f"{entry.slot} {entry.volume}",
    SlotOpened: lambda entry: f"{entry.slot} from epoch {entry.first}",
    SlotEnded: lambda entry: f"{entry.slot} through epoch {entry.last}",
    SlotSealed: lambda entry: str(entry.slot),
    PairsDealt: lambda entry: str(entry.dealing.number),
    GenerationKnown: lambda entry: str(entry.generation.number),
    GenerationGivenUp: lambda entry: str(entry.number),
    RetirementCalled: lambda _: "",
    PairsRetired: lambda entry: " ".join(entry.pairs),
    DataLost: lambda entry: f"{entry.subject}: {entry.why}",
    Completed: lambda _: "",
    FormatRaised: lambda entry: str(entry.format),
    Trimmed: lambda entry: str(entry.epoch),
}

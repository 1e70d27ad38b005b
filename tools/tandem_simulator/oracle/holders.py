"""Reads the header log independently: who holds what, and what may be forgotten [5].

It follows the writes to the volumes of log members. If two members wrote different entries with the
same number, the one with the higher term is valid.
"""

from __future__ import annotations

from typing import NamedTuple

from tandem_runtime.protocol.log.entries import (
    GenerationGivenUp,
    GenerationKnown,
    Lapsed,
    PairsRetired,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_simulator.oracle.violation import broken

_RELEVANT = (
    Seated,
    Verified,
    Vacated,
    Lapsed,
    Trimmed,
    PairsRetired,
    GenerationKnown,
    GenerationGivenUp,
)


class ExpectedHolder(NamedTuple):
    """The holder of a seat, and the epoch it holds the trim point at."""

    volume: str
    hold: int
    verified: bool = False
    lapsed: bool = False


class Holders:
    """Seats and trim point by the log, checked against the contents of volumes."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[int, object]] = {}
        """Term and entry, by number; only entries that matter here."""
        self.terms: dict[int, int] = {}
        self.committed: dict[str, int] = {}
        """The newest checkpoint on each volume, as written, not as reported."""
        self.seats: dict[tuple[str, int], ExpectedHolder] = {}
        self.generations: dict[int, tuple[str, ...]] = {}
        self.trim = 0
        self.forgiving = False
        """Whether the header log was rebuilt, so that its past no longer binds."""

    def snapshot(self, term: int, index: int) -> None:
        """A member restarts its copy: later entries of lower terms are invalid."""
        stale = [n for n, known in self.terms.items() if n > index and known < term]
        for number in stale:
            del self.terms[number]
        if any([self.entries.pop(number, None) for number in stale]):  # noqa: C419 (pop them all)
            self._fold()

    def wrote(self, term: int, number: int, entry: object, sinks: int) -> None:
        """A member wrote an entry. `sinks` is the last epoch that every sink has."""
        known = self.terms.get(number)
        if known is not None and known >= term:
            return
        if known is not None:
            self.snapshot(term, number - 1)
        self.terms[number] = term
        if isinstance(entry, _RELEVANT):
            self._check(entry, sinks)
            self.entries[number] = (term, entry)
            self._apply(entry)

    def _fold(self) -> None:
        self.seats = {}
        self.generations = {}
        self.trim = 0
        for number in sorted(self.entries):
            self._apply(self.entries[number][1])

    def _apply(self, entry: object) -> None:
        match entry:
            case Seated(pair, seat, volume):
                self.seats[pair, seat] = ExpectedHolder(volume, self.trim)
            case Verified(pair, seat, volume, epoch):
                self.seats[pair, seat] = ExpectedHolder(volume, epoch, verified=True)
            case Vacated(pair, seat, _, _):
                self.seats.pop((pair, seat), None)
            case Lapsed(pair, seat, _) if (pair, seat) in self.seats:
                self.seats[pair, seat] = self.seats[pair, seat]._replace(lapsed=True)
            case Trimmed(epoch):
                self.trim = max(self.trim, epoch)
            case GenerationKnown():
                self.generations[entry.generation.number] = entry.generation.names()
            case GenerationGivenUp():
                gone = self.generations.pop(entry.number, ())
                kept = {pair for names in self.generations.values() for pair in names}
                self._let_go(tuple(pair for pair in gone if pair not in kept))
            case PairsRetired(pairs):
                self._let_go(pairs)

    def _let_go(self, pairs: tuple[str, ...]) -> None:
        for seat in [seat for seat in self.seats if seat[0] in pairs]:
            del self.seats[seat]

    def _check(self, entry: object, sinks: int) -> None:
        if self.forgiving:
            return
        if isinstance(entry, Trimmed):
            self._check_trim(entry.epoch, sinks)
        elif isinstance(entry, Lapsed):
            twin = self.seats.get((entry.pair, 1 - entry.seat))
            if twin is None or twin.lapsed or not twin.verified:
                broken(
                    5,
                    "lapse-without-twin",
                    f"{entry.volume} of {entry.pair} is recorded as lapsed, although on the other "
                    f"seat is {twin}",
                    subject=entry.pair,
                )

    def _check_trim(self, epoch: int, sinks: int) -> None:
        if epoch > sinks:
            broken(
                5,
                "trim-undelivered",
                f"trim point {epoch} is recorded, the slowest sink stands at {sinks}",
                epoch=epoch,
            )
        for (pair, _), holder in self.seats.items():
            if holder.lapsed:
                continue
            truth = holder.hold
            if holder.verified:
                truth = max(truth, self.committed.get(holder.volume, 0))
            if truth < epoch:
                broken(
                    5,
                    "trim-past-holder",
                    f"trim point {epoch} is recorded, {holder.volume} of {pair}, which sits and "
                    f"has not lapsed, holds epoch {truth}",
                    epoch=epoch,
                    subject=pair,
                )

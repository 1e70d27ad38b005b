"""Starting the header log anew when every volume that had it is gone for good, rule (i).

The new lead musters: every replica and merge that reports to it says which headers it knows, how
far it has committed and how far the sinks are, and refuses lower terms from then on. The highest
header known to anybody becomes the last one. Nobody who speaks has seen a later one; whoever does
not speak is struck and joins again by copy. Lanes end where headers reach; the sources go on from
that header's positions. What cannot be had any more is said aloud: `DataLost`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tandem_runtime.protocol.book import CLOSED, Book, Lane, Seat
from tandem_runtime.protocol.data import Generation, Header, Intent, LaneId, Settings
from tandem_runtime.protocol.muster import Present

SEATS = 2


class Mustering:
    """The answers that have come so far, and whether they are enough."""

    __slots__ = ("copies", "present", "since", "term", "_settings")

    def __init__(self, term: int, settings: Settings, now: int) -> None:
        self.term = term
        self.since = now
        self._settings = settings
        self.present: dict[str, Present] = {}
        self.copies: dict[LaneId, dict[str, int]] = {}
        """Who holds how much of which lane."""

    def answered(self, volume: str, answer: Present) -> None:
        """A replica or a merge spoke."""
        if answer.term == self.term:
            self.present[volume] = answer

    def complete(self, intent: Intent | None, now: int) -> bool:
        """Is it time to go on? Waiting longer can only strike fewer."""
        waited = now - self.since
        if intent is None or waited < 2 * self._settings.silence:
            return False
        if waited >= self._settings.patience:
            return True
        last = self.last_header()
        pairs = _generation(self._generations(intent), last, intent).names()
        slots = {answer.slot for answer in self.present.values() if answer.kind == "merge"}
        return (last is None or all(self._holders(pair) for pair in pairs)) and slots >= set(
            range(intent.slots)
        )

    def last_header(self) -> Header | None:
        """The highest header that anybody knows."""
        return max((h for p in self.present.values() for h in p.headers), default=None)

    def _generations(self, intent: Intent) -> dict[int, Generation]:
        known = {g.number: g for g in intent.generations}
        for answer in self.present.values():
            known.update({g.number: g for g in answer.generations})
        return known

    def _holders(self, pair: str) -> list[tuple[int, str]]:
        """Full members of a pair, the one ahead first."""
        found = [
            (-answer.committed, volume)
            for volume, answer in self.present.items()
            if answer.kind == "replica" and answer.pair == pair and answer.verified
        ]
        return [(-committed, volume) for committed, volume in sorted(found)]

    def _sinks(self, intent: Intent) -> list[int]:
        """How far the sinks of each slot are, as the merge knows that knows most."""
        return [
            max((a.delivered for a in self.present.values() if a.slot == slot), default=0)
            for slot in range(intent.slots)
        ]

    def rebuilt(self, intent: Intent, gone: Container[str]) -> tuple[Book, list[tuple[str, str]]]:
        """The book as far as it can be known, and what is lost."""
        book = Book()
        last = self.last_header()
        generations = self._generations(intent)
        lost: list[tuple[str, str]] = []
        sinks = self._sinks(intent)
        if last is None:
            lost.extend(("sinks", "ahead of every header") for d in sinks if d > 0)
            return book, lost[:1]
        book.apply(last._replace(spans=()))
        book.first_of_generation = last.epoch
        book.know(_generation(generations, last, intent))
        if any(delivered > last.epoch for delivered in sinks):
            lost.append(("sinks", f"ahead of header {last.epoch}"))
        known = {h.epoch: h for p in self.present.values() for h in p.headers}
        first = last.epoch
        while first - 1 in known:
            first -= 1
        lost.extend(self._seat_everyone(book, first))
        self._trim(book, known, sinks)
        for header in book.headers.values():
            if header.generation in generations:
                book.know(generations[header.generation])
        lost.extend(self._lanes(book, gone))
        return book, lost

    def _seat_everyone(self, book: Book, first: int) -> Iterator[tuple[str, str]]:
        """Give seats to full members that can go on with the headers that are known."""
        for pair in book.pairs(book.generation):
            usable = [(c, volume) for c, volume in self._holders(pair) if c + 1 >= first]
            seats: list[Seat | None] = [
                Seat(volume, committed, verified=True) for committed, volume in usable[:SEATS]
            ]
            book.seats[pair] = seats + [None] * (SEATS - len(seats))
            if not seats:
                yield pair, "no replica answered that holds its state"

    def _trim(self, book: Book, known: dict[int, Header], sinks: list[int]) -> None:
        """Keep the headers that some seat or sink still needs."""
        holds = [seat.hold for seats in book.seats.values() for seat in seats if seat]
        book.trim = max(0, min([book.epoch, *holds, *sinks]))
        while book.trim < book.epoch and book.trim + 1 not in known:
            book.trim += 1
        book.headers = {e: known[e] for e in range(book.trim + 1, book.epoch + 1)}
        book.delivered = min(sinks, default=0)

    def _lanes(self, book: Book, gone: Container[str]) -> Iterator[tuple[str, str]]:
        """Lanes that kept headers speak of, closed where headers reach; what nobody has is lost."""
        for header in book.headers.values():
            for lane, first, last in header.spans:
                before = book.lanes.get(lane) or Lane(None, state=CLOSED, trimmed=first - 1)
                book.lanes[lane] = before._replace(reach=last, last=last)
        for lane, state in list(book.lanes.items()):
            holders = self.copies.get(lane, {})
            whole = [v for v, last in holders.items() if last >= state.last and v not in gone]
            buddies = [volume for volume in whole if volume != lane.split]
            book.lanes[lane] = state._replace(buddy=buddies[0] if buddies else None)
            if not whole and _needed(book, lane):
                yield f"lane {lane.split}/{lane.number}", "nobody holds its chunks"


def _generation(known: dict[int, Generation], last: Header | None, intent: Intent) -> Generation:
    return known[last.generation if last is not None else intent.target]


def _needed(book: Book, lane: LaneId) -> bool:
    """Does some pair's fastest replica still need rows of a lane?"""
    epochs = [e for e, h in book.headers.items() if any(s.lane == lane for s in h.spans)]
    slowest = min(
        max((seat.hold for seat in seats if seat), default=0) for seats in book.seats.values()
    )
    return max(epochs) > slowest

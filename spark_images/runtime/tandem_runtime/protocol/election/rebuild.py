"""Rebuild of the header log when every volume that had it is gone for good, rule (i).

The new lead musters: every replica and merge that reports to it answers with its headers, how far
it has committed and how far the sinks are, and refuses lower terms from then on. The newest header
of all answers, by term and epoch, becomes the last one, and the headers that lead to it by their
digests are the log's history (`history.py`). Headers of another history, from a member that was
silent when the log was rebuilt before, do not count. A replica that does not answer, or has run
another history, loses its seat and joins again by copy. Lanes end where headers reach; sources are
read from that header's positions. Data that cannot be recovered is recorded as `DataLost`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tandem_core.contract.intent import Generation, Intent
from tandem_core.model.states import MemberKind, SeatState
from tandem_runtime.protocol.lead.copy_rules import build_sources
from tandem_runtime.protocol.log.history import chain_to, digests_on, newest
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.states import LANE, SEAT, SLOT, LaneState
from tandem_runtime.protocol.types import (
    UNDIVIDED,
    Header,
    Lane,
    LaneId,
    ProtocolSettings,
    Seat,
    Slot,
)

SEATS = 2


class Rebuild:
    """Answers to a muster so far, and the log state that they add up to."""

    __slots__ = ("copies", "present", "since", "term", "_settings")

    def __init__(self, term: int, settings: ProtocolSettings, now: int) -> None:
        self.term = term
        self.since = now
        self._settings = settings
        self.present: dict[str, Present] = {}
        self.copies: dict[LaneId, dict[str, int]] = {}
        """The last chunk of each lane that each split holds."""

    def answered(self, volume: str, answer: Present) -> None:
        """Keep the answer of a replica or merge."""
        if answer.term == self.term:
            self.present[volume] = answer

    def complete(self, intent: Intent | None, now: int) -> bool:
        """Whether to rebuild now. Waiting longer can only leave more members their seats."""
        waited = now - self.since
        if intent is None or waited < 2 * self._settings.silence:
            return False
        if waited >= self._settings.patience:
            return True
        last = self.last_header()
        chain = self._chain(last)
        heard = {answer.slot for answer in self.present.values() if answer.kind is MemberKind.MERGE}
        known = {slot.number for slot in self._slots(intent)}
        return heard >= known and all(
            self._holders(pair, chain) for pair in self._needed_pairs(chain, intent)
        )

    def _needed_pairs(self, chain: dict[int, Header], intent: Intent) -> dict[str, None]:
        """Returns the pairs of the last header's generation, and of those of undelivered epochs."""
        generations = self._generations(intent)
        delivered = min(self._sinks(intent), default=0)
        newest = max(chain, default=0)
        named = {h.generation for e, h in chain.items() if e > delivered or e == newest}
        return dict.fromkeys(
            name for n in sorted(named) if n in generations for name in generations[n].names()
        )

    def last_header(self) -> Header | None:
        """Returns the newest header of all answers."""
        return newest(self._headers())

    def _headers(self) -> list[Header]:
        return [header for answer in self.present.values() for header in answer.headers]

    def _chain(self, last: Header | None) -> dict[int, Header]:
        """Returns the history that ends with a header, as far back as it is known, by epoch."""
        return chain_to(last, self._headers()) if last is not None else {}

    def _generations(self, intent: Intent) -> dict[int, Generation]:
        known = {g.number: g for g in intent.generations}
        for answer in self.present.values():
            known.update({g.number: g for g in answer.generations})
        return known

    def _holders(self, pair: str, chain: dict[int, Header]) -> list[tuple[int, str]]:
        """Returns full members of a pair whose state is of this history, the one ahead first."""
        found = [
            (-answer.committed, volume)
            for volume, answer in self.present.items()
            if answer.kind is MemberKind.REPLICA and answer.pair == pair and answer.verified
            if is_on_chain(chain, answer)
        ]
        return [(-committed, volume) for committed, volume in sorted(found)]

    def _slots(self, intent: Intent) -> tuple[Slot, ...]:
        """Returns the merge slots of the answer with the newest view.

        A start or end of a slot after the last header is lost.
        """
        last = self.last_header()
        epoch = last.epoch if last is not None else 0
        newest = max(self.present.values(), key=lambda answer: answer.version, default=None)
        if newest is None or not newest.slots:
            return tuple(Slot(number=number, first=1) for number in range(max(1, intent.slots)))
        return tuple(
            slot if slot.is_open else slot.ended_at(min(slot.last, epoch))
            for slot in newest.slots
            if slot.first <= epoch + 1
        )

    def _sinks(self, intent: Intent) -> list[int]:
        """Returns how far each slot has delivered, by its most advanced merge."""
        found = []
        for slot in self._slots(intent):
            told = [
                answer.delivered
                for answer in self.present.values()
                if answer.kind is MemberKind.MERGE and answer.slot == slot.number
            ]
            reached = max([slot.first - 1, *told])
            if slot.is_open or reached < slot.last:
                found.append(reached)
        return found

    def _furthest(self) -> int:
        """Returns the last epoch that any sink has, of any slot."""
        merges = [a for a in self.present.values() if a.kind is MemberKind.MERGE]
        return max((max(a.delivered, a.furthest) for a in merges), default=0)

    def _know_slots(self, log_state: LogState, intent: Intent) -> Iterator[tuple[str, str]]:
        """Restore slots and dealings; without its dealing no merge can deliver an epoch."""
        log_state.slots = {slot.number: slot for slot in self._slots(intent)}
        for slot in log_state.slots.values():
            SLOT.check(None, slot.state, slot.number)
        told = [answer.next_slot for answer in self.present.values()]
        log_state.next_slot = max([max(log_state.slots) + 1, *told])
        # Two histories may have dealings of one number: the answer with the newest view counts.
        answers = sorted(self.present.values(), key=lambda answer: answer.version)
        known = {dealing.number: dealing for answer in answers for dealing in answer.dealings}
        named = {header.dealing for header in log_state.headers.values()} - {UNDIVIDED}
        log_state.dealings = {n: d for n, d in known.items() if n in named or n == max(known)}
        yield from ((f"dealing {number}", "no merge knows it") for number in named - known.keys())

    def rebuilt(
        self, intent: Intent, gone: Container[str]
    ) -> tuple[LogState, list[tuple[str, str]]]:
        """Return the log state as far as it can be restored, and the losses."""
        # A lower format would admit builds that drop fields of the headers.
        formats = [answer.format for answer in self.present.values()]
        log_state = LogState(format=max(formats, default=1))
        last = self.last_header()
        generations = self._generations(intent)
        lost: list[tuple[str, str]] = []
        sinks = self._sinks(intent)
        if last is None:
            lost.extend(self._know_slots(log_state, intent))
            if self._furthest() > 0:
                lost.insert(0, ("sinks", "ahead of every header"))
            return log_state, lost[:1]
        log_state.apply(last.replace(spans=()))
        log_state.first_of_generation = last.epoch
        log_state.know(generations[last.generation])
        chain = self._chain(last)
        if self._furthest() > last.epoch:
            lost.append(("sinks", f"ahead of header {last.epoch}"))
        elif self._delivered_otherwise(chain):
            lost.append(("sinks", "have epochs of another history"))
        lost.extend(self._seat_everyone(log_state, chain, intent))
        self._trim(log_state, chain, sinks)
        for header in log_state.headers.values():
            if header.generation in generations:
                log_state.know(generations[header.generation])
        lost.extend(self._know_slots(log_state, intent))
        lost.extend(self._lanes(log_state, gone))
        return log_state, lost

    def _delivered_otherwise(self, chain: dict[int, Header]) -> bool:
        """Whether a sink has an epoch of another history."""
        return any(
            answer.kind is MemberKind.MERGE and answer.digest and not is_on_chain(chain, answer)
            for answer in self.present.values()
            if answer.delivered >= min(chain) - 1
        )

    def _seat_everyone(
        self, log_state: LogState, chain: dict[int, Header], intent: Intent
    ) -> Iterator[tuple[str, str]]:
        """Give seats to full members whose state is of this history.

        Those of older generations may be needed too: they have results that are not delivered, or
        new pairs are built from them. The lead retires them as usual.
        """
        needed = self._needed_pairs(chain, intent)
        for number, generation in sorted(self._generations(intent).items()):
            older = number < log_state.generation
            if older and any(self._holders(pair, chain) for pair in generation.names()):
                log_state.know(generation)
                needed.update(dict.fromkeys(generation.names()))
        for pair in needed:
            usable = self._holders(pair, chain)[:SEATS]
            for _, volume in usable:
                SEAT.check(None, SeatState.VERIFIED, volume)
            seats: list[Seat | None] = [
                Seat(volume, committed, SeatState.VERIFIED) for committed, volume in usable
            ]
            log_state.seats[pair] = seats + [None] * (SEATS - len(seats))
        for pair in log_state.pairs(log_state.generation):
            if log_state.seats[pair] == [None] * SEATS and not build_sources(log_state, pair):
                yield pair, "no replica answered that holds its state"

    def _trim(self, log_state: LogState, chain: dict[int, Header], sinks: list[int]) -> None:
        """Keep the headers that some seat or sink still needs."""
        holds = [seat.hold for seats in log_state.seats.values() for seat in seats if seat]
        log_state.trim = max(0, min([log_state.epoch, *holds, *sinks]))
        while log_state.trim < log_state.epoch and log_state.trim + 1 not in chain:
            log_state.trim += 1
        log_state.trimmed_digest = digests_on(chain)[log_state.trim]
        log_state.headers = {e: chain[e] for e in range(log_state.trim + 1, log_state.epoch + 1)}
        log_state.delivered = min(sinks, default=0)

    def _lanes(self, log_state: LogState, gone: Container[str]) -> Iterator[tuple[str, str]]:
        """Close lanes of kept headers where headers reach; yield those that no split has."""
        for header in log_state.headers.values():
            for span in header.spans:
                before = log_state.lanes.get(span.lane)
                if before is None:
                    LANE.check(None, LaneState.CLOSED, span.lane)
                    before = Lane(None, state=LaneState.CLOSED, trimmed=span.first - 1)
                log_state.lanes[span.lane] = before.replace(reach=span.last, last=span.last)
        for lane, state in list(log_state.lanes.items()):
            holders = self.copies.get(lane, {})
            whole = [v for v, last in holders.items() if last >= state.last and v not in gone]
            buddies = [volume for volume in whole if volume != lane.split]
            log_state.lanes[lane] = state.replace(buddy=buddies[0] if buddies else None)
            if not whole and _needed(log_state, lane):
                yield f"lane {lane.split}/{lane.number}", "no split holds its chunks"


def is_on_chain(chain: dict[int, Header], answer: Present) -> bool:
    """Whether the last epoch that a member has committed, or delivered, is of this history."""
    reached = answer.committed if answer.kind is MemberKind.REPLICA else answer.delivered
    return digests_on(chain).get(reached) == answer.digest


def _needed(log_state: LogState, lane: LaneId) -> bool:
    """Whether the faster replica of some pair still needs rows of a lane."""
    epochs = [e for e, h in log_state.headers.items() if any(s.lane == lane for s in h.spans)]
    slowest = min(
        max((seat.hold for seat in seats if seat), default=0) for seats in log_state.seats.values()
    )
    return max(epochs) > slowest

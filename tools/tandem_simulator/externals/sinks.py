"""Simulates the two exactly-once classes of sinks. Both fence by their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandem_simulator.oracle.ledger import Ledger

Answers = tuple[tuple[str, tuple[tuple[object, ...], ...]], ...]
"""Output rows by pair."""


def admits(position: int, epoch: int) -> bool:
    """The position check: an epoch is accepted only if it is the next one."""
    return position == epoch - 1


class SimulatedSink:
    """A sink, which outlives every process of the pipeline."""

    __slots__ = (
        "blocked_until",
        "delay",
        "ledger",
        "name",
        "positions",
        "sealed",
        "stored",
        "transactional",
    )

    def __init__(self, name: str, *, transactional: bool, ledger: Ledger) -> None:
        self.name = name
        self.transactional = transactional
        self.ledger = ledger
        self.positions: dict[int, int] = {}
        """The last epoch of each slot."""
        self.sealed: set[int] = set()
        """Slots that are closed for good."""
        self.stored: dict[tuple[object, ...], int] = {}
        """The epoch in which each key was last written, for an idempotent sink."""
        self.blocked_until = 0
        self.delay = 0

    def position(self, slot: int, first: int = 1) -> int:
        """The position of a slot; a new slot is positioned before its first epoch."""
        if slot not in self.positions:
            self.positions[slot] = first - 1
            self.ledger.opened(self.name, slot, first)
        return self.positions[slot]

    def admits(self, slot: int, epoch: int) -> bool:
        """Whether this epoch of a slot would be accepted now."""
        return slot not in self.sealed and admits(self.position(slot), epoch)

    def seal(self, slot: int, first: int, last: int) -> bool:
        """Seal a slot if its last epoch is delivered; return whether it is sealed."""
        if self.position(slot, first) == last:
            self.sealed.add(slot)
        return slot in self.sealed

    def deliver(self, slot: int, epoch: int, answers: Answers) -> bool:
        """Transactional: write rows and position in one step; false if the position check fails."""
        if not self.admits(slot, epoch):
            return False
        self.ledger.delivered(self.name, epoch, answers, slot)
        self.positions[slot] = epoch
        return True

    def upsert(
        self, slot: int, epoch: int, pair: str, rows: tuple[tuple[object, ...], ...]
    ) -> None:
        """Idempotent: write rows whose stored epoch is lower."""
        for row in rows:
            key = row[:2] if row[0] == 0 else row[:4]
            if self.stored.get(key, 0) < epoch:
                self.stored[key] = epoch
                self.ledger.upserted(self.name, epoch, pair, row, slot)

    def advance(self, slot: int, epoch: int, answers: Answers) -> bool:
        """Idempotent: advance the position once all rows are written."""
        if not self.admits(slot, epoch):
            return False
        self.ledger.advanced(self.name, epoch, answers, slot)
        self.positions[slot] = epoch
        return True

"""Sinks of the two classes for which exactly-once is promised. Both fence by their position."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandem.simulator.ledger import Ledger

Answers = tuple[tuple[str, tuple[tuple[object, ...], ...]], ...]
"""Output rows by pair."""


def admits(position: int, epoch: int) -> bool:
    """The position check: an epoch is let in only where it is the next one."""
    return position == epoch - 1


class Sink:
    """A sink outside the pipeline: it outlives every process of it."""

    __slots__ = ("blocked_until", "delay", "ledger", "name", "position", "stored", "transactional")

    def __init__(self, name: str, *, transactional: bool, ledger: Ledger) -> None:
        self.name = name
        self.transactional = transactional
        self.ledger = ledger
        self.position = 0
        self.stored: dict[tuple[object, ...], int] = {}
        """The epoch in which each key was last written, for an idempotent sink."""
        self.blocked_until = 0
        self.delay = 0

    def admits(self, epoch: int) -> bool:
        """Would this epoch be let in now?"""
        return admits(self.position, epoch)

    def deliver(self, epoch: int, answers: Answers) -> bool:
        """Transactional: rows and position in one step; false if the position check refused."""
        if not admits(self.position, epoch):
            return False
        self.ledger.delivered(self.name, epoch, answers)
        self.position = epoch
        return True

    def upsert(self, epoch: int, pair: str, rows: tuple[tuple[object, ...], ...]) -> None:
        """Idempotent: write rows whose stored epoch is lower."""
        for row in rows:
            key = row[:2] if row[0] == 0 else row[:4]
            if self.stored.get(key, 0) < epoch:
                self.stored[key] = epoch
                self.ledger.upserted(self.name, epoch, pair, row)

    def advance(self, epoch: int, answers: Answers) -> bool:
        """Idempotent: move the position once all rows are in."""
        if not admits(self.position, epoch):
            return False
        self.ledger.advanced(self.name, epoch, answers)
        self.position = epoch
        return True

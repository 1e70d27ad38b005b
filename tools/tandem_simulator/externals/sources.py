"""Source partitions: rows appear over time, are read by any reader, and may be forgotten."""

from __future__ import annotations

from bisect import bisect_right
from random import Random

from tandem_runtime.protocol.messages.peers import SourceRows
from tandem_runtime.protocol.types import BEGINNING_OF_TIME
from tandem_simulator.engine.configuration import ROW_BYTES, Partition

MOST_ROWS = 5
"""Most rows of one answer."""


class Source:
    """One source partition. Several consumers may read it at once."""

    __slots__ = ("acknowledged", "plan")

    def __init__(self, plan: Partition) -> None:
        self.plan = plan
        self.acknowledged = 0

    def acknowledge(self, position: int) -> None:
        """Acknowledge the rows before `position`; a forgetful source drops them."""
        self.acknowledged = max(self.acknowledged, position)

    def ready_at(self, position: int) -> int:
        """When a pull from this position can be answered."""
        plan = self.plan
        if position < len(plan.available):
            return plan.available[position]
        return plan.ends

    def read(self, position: int, now: int, rng: Random) -> SourceRows:
        """Answer a pull that is ready."""
        plan = self.plan
        if plan.forgets and position < self.acknowledged:
            return SourceRows(
                plan.name, position, position, 0, BEGINNING_OF_TIME, ended=False, forgotten=True
            )
        there = bisect_right(plan.available, now)
        end = max(position, min(there, position + rng.randint(1, MOST_ROWS)))
        rows = plan.rows[position:end]
        return SourceRows(
            plan.name,
            position,
            end,
            len(rows) * ROW_BYTES,
            max((row[3] for row in rows), default=BEGINNING_OF_TIME),
            ended=end == len(plan.rows) and now >= plan.ends,
            forgotten=False,
            payload=rows,
            rows=len(rows),
        )

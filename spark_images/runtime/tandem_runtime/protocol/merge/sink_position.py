"""Tracks a sink's position, which makes delivery exactly-once [2].

The position is the last epoch that a slot has delivered, stored by the sink itself, one for each
slot. An ended slot is sealed there: its position never moves again. A transactional sink moves
it together with the rows; an idempotent one takes a row only if its stored epoch is lower, and
moves the position last. `SinkTracker` is the merge's side: it never delivers without knowing the
position, and after an unknown outcome it reads the position first.
"""

from __future__ import annotations

from tandem_runtime.protocol.effects import Deliver, Effect, ReadPosition

MOST_DOUBLINGS = 6
"""Maximum number of times that the back-off of requests to a silent sink is doubled."""


def can_deliver(position: int, epoch: int) -> bool:
    """Whether this epoch is the next one of a sink at `position`."""
    return epoch == position + 1


class SinkTracker:
    """Position of one sink as its merge knows it, and the request under way."""

    __slots__ = (
        "asked_at",
        "floor",
        "name",
        "op",
        "position",
        "rewound",
        "sealed",
        "slot",
        "unanswered",
    )

    def __init__(self, name: str, slot: int = 0) -> None:
        self.name = name
        self.slot = slot
        self.position: int | None = None
        """Last known position; None until the sink has answered."""
        self.asked_at: int | None = None
        """When the request or delivery under way was sent; None if there is none."""
        self.op = 0
        """Number of the last request; answers to earlier ones may still arrive."""
        self.floor = 0
        """Lowest position that a correct sink can answer to the last request."""
        self.rewound = False
        self.sealed = False
        """Whether this sink has sealed the slot and takes nothing more from it."""
        self.unanswered = 0
        """Requests since the sink last answered."""

    def overdue(self, silence: int, now: int) -> bool:
        """Whether to repeat an unanswered request; waits longer each time (back-off) [12]."""
        patience = silence << min(self.unanswered, MOST_DOUBLINGS)
        return self.asked_at is not None and now - self.asked_at >= patience

    def read(self, recorded: int, now: int, first: int = 1) -> list[Effect]:
        """Requests the position; `recorded` is the last epoch delivered according to the lead.

        A slot that begins with epoch `first` has the position `first - 1` at first.
        """
        self.unanswered += 1
        op = self._begin(recorded, now)
        return [ReadPosition(sink=self.name, op=op, slot=self.slot, first=first)]

    def told(self, position: int, op: int, *, sealed: bool = False) -> bool:
        """Takes the position of a sink; true if it has gone backwards, as after a restored backup.

        That is judged only by the answer to the last request, against what was known when it was
        sent: an earlier delivery may have completed and been reported in between.
        """
        self.unanswered = 0
        self.sealed = self.sealed or sealed
        if op == self.op:
            self.asked_at = None
            if position < self.floor:
                fresh, self.rewound = not self.rewound, True
                return fresh
            self.rewound = False
        elif self.position is None:
            return False
        self.position = max(position, self.position or 0)
        return False

    def deliver(
        self, epoch: int, answers: tuple[tuple[str, object], ...], now: int, *, shared: bool = False
    ) -> list[Effect]:
        """Delivers an epoch if it is this sink's next one and nothing is under way."""
        if self.asked_at is not None or self.rewound or self.sealed or self.position is None:
            return []
        if not can_deliver(self.position, epoch):
            return []
        return [
            Deliver(
                sink=self.name,
                epoch=epoch,
                answers=answers,
                op=self._begin(self.position, now),
                slot=self.slot,
                shared=shared,
            )
        ]

    def _begin(self, recorded: int, now: int) -> int:
        self.asked_at = now
        self.op += 1
        self.floor = max(recorded, self.position or 0)
        return self.op

"""A sink's position: what makes delivery happen once [2].

The position is the last epoch that a slot has delivered, kept by the sink itself, one for each
slot. A slot that has ended is sealed there: its position takes no more. A transactional sink moves
it together with the rows; an idempotent one takes a row only if its stored epoch is lower, and
moves the position last. `SinkTracker` is the merge's side: it never delivers without knowing the
position, and after an unknown outcome it reads first.
"""

from __future__ import annotations

from tandem_runtime.protocol.effects import Deliver, Effect, ReadPosition

MOST_DOUBLINGS = 6
"""So often the time between two questions to a silent sink is doubled."""


def can_deliver(position: int, epoch: int) -> bool:
    """Is this epoch the next one of a sink that stands at `position`?"""
    return epoch == position + 1


def can_replace(stored_epoch: int, epoch: int) -> bool:
    """May an idempotent sink's row of an epoch be replaced by one of another?"""
    return epoch > stored_epoch


class SinkTracker:
    """What a merge knows of one of its sinks."""

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
        """None until the sink has told."""
        self.asked_at: int | None = None
        """When the question or delivery under way was sent."""
        self.op = 0
        """Its number; the answer to an earlier one may come later."""
        self.floor = 0
        """Where the sink was known to stand when that was sent."""
        self.rewound = False
        self.sealed = False
        """The slot has ended here: nothing is taken from it any more."""
        self.unanswered = 0
        """Questions since the sink last spoke."""

    def overdue(self, silence: int, now: int) -> bool:
        """Is it time to ask again? A sink that takes long is asked ever less often [12]."""
        patience = silence << min(self.unanswered, MOST_DOUBLINGS)
        return self.asked_at is not None and now - self.asked_at >= patience

    def read(self, recorded: int, now: int, first: int = 1) -> list[Effect]:
        """Ask for the position; `recorded` is what the header log says is delivered.

        A slot that begins with epoch `first` begins right before it.
        """
        self.unanswered += 1
        op = self._begin(recorded, now)
        return [ReadPosition(sink=self.name, op=op, slot=self.slot, first=first)]

    def told(self, position: int, op: int, *, sealed: bool = False) -> bool:
        """The sink told its position; true if it has fallen back (a restored backup).

        Only the answer to the last question counts for that, and only below what was known when
        it was asked: a delivery of before may have landed and been told in between.
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
        """Deliver an epoch if it is this sink's next and nothing is under way."""
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

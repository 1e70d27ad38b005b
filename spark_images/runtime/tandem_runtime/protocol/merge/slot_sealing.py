"""Sealing ended slots: an active merge of another slot sees to it at every sink.

The seal is conditional on the slot's last epoch, so it can be asked for at any time, by anybody,
again and again. Until the slot has delivered that epoch the sink only tells its position.
"""

from __future__ import annotations

from collections.abc import Iterable

from tandem_runtime.protocol.effects import Effect, SealSlot
from tandem_runtime.protocol.merge.sink_position import MOST_DOUBLINGS
from tandem_runtime.protocol.messages.peers import SinkPosition
from tandem_runtime.protocol.types import Slot


class Sealing:
    """What a merge knows of slots that have ended."""

    __slots__ = ("_asked", "_op", "_sealed", "_silence", "_sinks")

    def __init__(self, sinks: Iterable[str], silence: int) -> None:
        self._sinks = tuple(sinks)
        self._silence = silence
        self._asked: dict[tuple[int, str], tuple[int, int]] = {}
        """When a sink was asked to seal a slot, and how often since it last spoke."""
        self._sealed: set[tuple[int, str]] = set()
        self._op = 0

    def keep(self, slots: Iterable[int]) -> None:
        """Forget slots that the header log has forgotten [12]."""
        known = set(slots)
        self._asked = {key: value for key, value in self._asked.items() if key[0] in known}
        self._sealed = {key for key in self._sealed if key[0] in known}

    def ask(self, ended: Iterable[Slot], now: int) -> list[Effect]:
        """Ask sinks to seal these slots; one that does not answer ever less often [12]."""
        effects: list[Effect] = []
        for slot in ended:
            for sink in self._sinks:
                key = (slot.number, sink)
                if key in self._sealed or not self._due(key, now):
                    continue
                self._asked[key] = (now, self._asked.get(key, (0, 0))[1] + 1)
                self._op += 1
                effects.append(
                    SealSlot(
                        sink=sink,
                        slot=slot.number,
                        first=slot.first,
                        last=slot.last,
                        op=self._op,
                    )
                )
        return effects

    def _due(self, key: tuple[int, str], now: int) -> bool:
        if key not in self._asked:
            return True
        at, unanswered = self._asked[key]
        return now - at >= self._silence << min(unanswered, MOST_DOUBLINGS)

    def told(self, message: SinkPosition) -> bool:
        """A sink answered; true if it says for the first time that a slot is sealed."""
        key = (message.slot, message.sink)
        if key in self._asked:
            self._asked[key] = (self._asked[key][0], 0)
        fresh = message.sealed and key not in self._sealed
        if fresh:
            self._sealed.add(key)
        return fresh

    def done(self) -> tuple[int, ...]:
        """Slots that every sink has sealed."""
        slots = {slot for slot, _ in self._sealed}
        return tuple(
            sorted(s for s in slots if all((s, sink) in self._sealed for sink in self._sinks))
        )

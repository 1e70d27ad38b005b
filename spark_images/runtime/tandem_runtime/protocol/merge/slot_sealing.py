"""Seals ended slots at every sink, on behalf of the active merge of another slot.

The seal is conditional on the slot's last epoch, so any merge can request it at any time and
repeatedly. Until the slot has delivered that epoch, the sink only answers with its position.
"""

from __future__ import annotations

from collections.abc import Iterable

from tandem_runtime.protocol.effects import Effect, SealSlot
from tandem_runtime.protocol.merge.sink_position import MOST_DOUBLINGS
from tandem_runtime.protocol.messages.peers import SinkPosition
from tandem_runtime.protocol.types import Slot


class Sealing:
    """Tracks which ended slots each sink has sealed."""

    __slots__ = ("_asked", "_op", "_sealed", "_silence", "_sinks")

    def __init__(self, sinks: Iterable[str], silence: int) -> None:
        self._sinks = tuple(sinks)
        self._silence = silence
        self._asked: dict[tuple[int, str], tuple[int, int]] = {}
        """When a sink was last asked to seal a slot, and how often since it last answered."""
        self._sealed: set[tuple[int, str]] = set()
        self._op = 0

    def keep(self, slots: Iterable[int]) -> None:
        """Drops slots that the header log no longer has [12]."""
        known = set(slots)
        self._asked = {key: value for key, value in self._asked.items() if key[0] in known}
        self._sealed = {key for key in self._sealed if key[0] in known}

    def ask(self, ended: Iterable[Slot], now: int) -> list[Effect]:
        """Requests the seal of these slots, with back-off for sinks that do not answer [12]."""
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
        """Takes a sink's answer; true if it reports for the first time that a slot is sealed."""
        key = (message.slot, message.sink)
        if key in self._asked:
            self._asked[key] = (self._asked[key][0], 0)
        fresh = message.sealed and key not in self._sealed
        if fresh:
            self._sealed.add(key)
        return fresh

    def done(self) -> tuple[int, ...]:
        """Returns the slots that every sink has sealed."""
        slots = {slot for slot, _ in self._sealed}
        return tuple(
            sorted(s for s in slots if all((s, sink) in self._sealed for sink in self._sinks))
        )

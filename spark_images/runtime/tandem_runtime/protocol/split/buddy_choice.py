"""Chooses the buddy: the next split by name, on another node if there is one."""

from __future__ import annotations

from collections.abc import Container

from tandem_runtime.protocol.types import Member


class Neighbours:
    """The other splits as discovery knows them, tried one after the other."""

    __slots__ = ("gone", "leaving", "me", "members", "_for_lane", "_for_log")

    def __init__(self, me: Member, gone: Container[str]) -> None:
        self.me = me
        self.gone = gone
        self.leaving: set[str] = set()
        self.members: tuple[Member, ...] = ()
        self._for_lane = 0
        self._for_log = 0

    def next_for_lane(self) -> str | None:
        """Returns a candidate for the lane's second copy; another one at each call."""
        self._for_lane += 1
        return self._pick(self._for_lane - 1)

    def next_for_log(self) -> str | None:
        """Returns a candidate for the header log's second copy; another one at each call."""
        self._for_log += 1
        return self._pick(self._for_log - 1)

    def _pick(self, turn: int) -> str | None:
        others = [
            member
            for member in sorted(self.members)
            if member.volume not in self.gone
            and member.volume not in self.leaving
            and member.name != self.me.name
        ]
        after = [m for m in others if m.name > self.me.name]
        before = [m for m in others if m.name < self.me.name]
        ring = [*after, *before]
        elsewhere = [m for m in ring if m.node != self.me.node]
        candidates = elsewhere or ring
        return candidates[turn % len(candidates)].volume if candidates else None

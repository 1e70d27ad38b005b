"""Chunks that a split keeps besides its own lane: copies of other splits' lanes, its past lanes.

Either copy of a lane serves reads. The copy of the recorded buddy also determines where a lane
ends when its owner is gone; for that it is sealed first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tandem_core.contract.records import Record
from tandem_runtime.protocol.effects import Effect, Erase, Key, Write
from tandem_runtime.protocol.log.replicated_log import Fence, LogCopy
from tandem_runtime.protocol.messages.peers import CopyChunk, LaneReport, SealedCopy, Version
from tandem_runtime.protocol.types import Chunk, LaneId, Note


class StoredCopy(Record):
    """The metadata of a lane's copy on a volume, beside its chunks."""

    fence: Fence
    base: int
    sealed: bool
    view: int
    """Number of the buddy record under which it was sealed."""


class KeptLane:
    """Chunks of one lane on this volume."""

    __slots__ = ("copy", "notes", "sealed_view")

    def __init__(self, copy: LogCopy, sealed_view: int = 0) -> None:
        self.copy = copy
        self.notes: dict[int, Note] = {}
        self.sealed_view = sealed_view
        """Number of the buddy record under which it was sealed."""

    def stored(self) -> StoredCopy:
        """Return the metadata of this copy, for the volume."""
        return StoredCopy(self.copy.fence, self.copy.base, self.copy.sealed, self.sealed_view)


class Copies:
    """All lanes kept on a volume, apart from the one that is being written."""

    def __init__(self, me: str, volume: Mapping[Key, object]) -> None:
        self.me = me
        self.lanes: dict[LaneId, KeptLane] = {}
        self.highest = cast("int", volume.get(("lanes",), 0))
        """Highest number of an own lane ever used."""
        self.forgot = cast("Version", volume.get(("forgot",), (0, 0)))
        """Version of the last view by which a lane was forgotten here."""
        for key, value in volume.items():
            if key[0] == "copy":
                stored = cast("StoredCopy", value)
                copy = LogCopy(stored.fence, stored.base, stored.base, sealed=stored.sealed)
                kept = KeptLane(copy, stored.view)
                self.lanes[cast("LaneId", key[1])] = kept
            elif key[0] == "lane":
                base = cast("int", value)
                self.lanes[cast("LaneId", key[1])] = KeptLane(LogCopy((0, 0), base, base))
        for lane, kept in self.lanes.items():
            self._restore(lane, kept, volume)

    def _restore(self, lane: LaneId, kept: KeptLane, volume: Mapping[Key, object]) -> None:
        while ("chunk", lane, kept.copy.through + 1) in volume:
            kept.copy.through += 1
            chunk = cast("Chunk", volume["chunk", lane, kept.copy.through])
            kept.notes[kept.copy.through] = chunk.note

    def keep_own(self, lane: LaneId, base: int, through: int, notes: dict[int, Note]) -> None:
        """Keep the chunks of an own lane that has ended readable."""
        kept = KeptLane(LogCopy((0, 0), base, through))
        kept.notes = notes
        self.lanes[lane] = kept

    def take(self, message: CopyChunk) -> tuple[list[Effect], int | None]:
        """Store a chunk of another split's lane; return effects, and the last chunk held now.

        None if the copy is sealed or this owner's fill is outdated: then the owner gets no answer,
        and drops this buddy. The same if the lane is unknown and its owner may not know yet that
        it was closed: a seal is forgotten together with its lane.
        """
        kept = self.lanes.get(message.lane)
        effects: list[Effect] = []
        if kept is None and message.version < self.forgot:
            return [], None
        if kept is None:
            kept = KeptLane(LogCopy(message.fence, message.base, message.base))
            self.lanes[message.lane] = kept
            effects.append(Write(("copy", message.lane), kept.stored()))
        elif kept.copy.replaced_by(message.fence):
            effects += self._refill(message, kept)
        if not kept.copy.admits(message.fence):
            return [], None
        if message.base > kept.copy.through:
            effects += self._drop(message.lane, kept, message.base)
            kept.copy.through = message.base
        if kept.copy.accept(message.number):
            (chunk,) = cast("tuple[Chunk]", message.payload)
            kept.notes[message.number] = chunk.note
            effects.append(Write(("chunk", message.lane, message.number), chunk))
        return effects, kept.copy.through

    def _refill(self, message: CopyChunk, kept: KeptLane) -> list[Effect]:
        """Start a new fill: the chunks here stay, being the same; only the fence is new."""
        kept.copy = LogCopy(message.fence, kept.copy.base, kept.copy.through)
        kept.sealed_view = 0
        return [Write(("copy", message.lane), kept.stored())]

    def seal(self, lane: LaneId, view: int) -> list[Effect]:
        """Refuse further chunks: the lane is being closed and this is its recorded buddy."""
        kept = self.lanes.get(lane)
        if kept is None:
            kept = self.lanes[lane] = KeptLane(LogCopy((0, 0), 0, 0))
        if kept.copy.sealed and kept.sealed_view == view:
            return []
        kept.copy.sealed = True
        kept.sealed_view = view
        return [Write(("copy", lane), kept.stored())]

    def trim(self, lane: LaneId, through: int) -> list[Effect]:
        """Forget what a recorded trim point covers [5]."""
        kept = self.lanes.get(lane)
        if kept is None or through <= kept.copy.base:
            return []
        # Chunks trimmed everywhere need no copy.
        kept.copy.through = max(kept.copy.through, through)
        return self._drop(lane, kept, through)

    def _drop(self, lane: LaneId, kept: KeptLane, through: int) -> list[Effect]:
        first, kept.copy.base = kept.copy.base + 1, max(kept.copy.base, through)
        mine = lane.split == self.me
        effects: list[Effect] = [
            Write(("lane", lane), through) if mine else Write(("copy", lane), kept.stored())
        ]
        effects.extend(
            Erase(("chunk", lane, number))
            for number in range(first, through + 1)
            if kept.notes.pop(number, None) is not None
        )
        return effects

    def forget(self, lane: LaneId, version: Version) -> list[Effect]:
        """Remove everything of a lane that is over."""
        kept = self.lanes.pop(lane, None)
        if kept is None:
            return []
        self.forgot = max(self.forgot, version)
        effects: list[Effect] = [Write(("forgot",), self.forgot)]
        effects.extend(Erase(("chunk", lane, number)) for number in kept.notes)
        effects.append(Erase(("lane" if lane.split == self.me else "copy", lane)))
        return effects

    def sealed(self, reaches: dict[LaneId, int]) -> tuple[SealedCopy, ...]:
        """Return the sealed copies, which answer closings."""
        return tuple(
            SealedCopy(
                lane,
                kept.sealed_view,
                kept.copy.through,
                tuple((n, note) for n, note in kept.notes.items() if n > reaches.get(lane, 0)),
            )
            for lane, kept in self.lanes.items()
            if kept.copy.sealed and lane.split != self.me
        )

    def past_lanes(self, reaches: dict[LaneId, int]) -> tuple[LaneReport, ...]:
        """Return reports of own lanes that take no more rows."""
        return tuple(
            LaneReport(
                lane=lane,
                through=kept.copy.through,
                notes=tuple((n, x) for n, x in kept.notes.items() if n > reaches.get(lane, 0)),
                live=False,
                ask=None,
                over_bound=False,
                stuck=False,
            )
            for lane, kept in self.lanes.items()
            if lane.split == self.me
        )

"""Deals pairs to merge slots, and finds the pairs that a slot delivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tandem_runtime.protocol.types import UNDIVIDED, Dealing


def pairs_of_slot(
    dealings: Mapping[int, Dealing], dealing: int, slot: int, pairs: Iterable[str]
) -> tuple[str, ...]:
    """Returns those of an epoch's pairs that a slot delivers, sorted."""
    if dealing == UNDIVIDED:
        return tuple(sorted(pairs)) if slot == 0 else ()
    dealt = dealings[dealing].pairs_of(slot)
    return tuple(sorted(pair for pair in pairs if pair in dealt))


def slot_of_pair(dealings: Mapping[int, Dealing], dealing: int, pair: str) -> int | None:
    """Returns the slot that delivers a pair; None if the dealing does not have the pair."""
    if dealing == UNDIVIDED:
        return 0
    return next((slot for slot, pairs in dealings[dealing].slots if pair in pairs), None)


def deal(
    number: int, pairs: Iterable[str], slots: Sequence[int], before: Dealing | None
) -> Dealing:
    """Deals pairs evenly, and moves as few pairs as possible to another slot."""
    waiting = sorted(pairs)
    held = {slot: _still(before, slot, waiting) for slot in slots}
    # The slots with most pairs take the remainder, so that the fewest pairs move.
    share, more = divmod(len(waiting), len(slots))
    by_load = sorted(slots, key=lambda slot: (-len(held[slot]), slot))
    room = {slot: share + (place < more) for place, slot in enumerate(by_load)}
    kept = {slot: held[slot][: room[slot]] for slot in slots}
    settled = {pair for pairs_kept in kept.values() for pair in pairs_kept}
    for pair in waiting:
        if pair not in settled:
            slot = next(each for each in slots if len(kept[each]) < room[each])
            kept[slot] = [*kept[slot], pair]
    return Dealing(
        number=number, slots=tuple((slot, tuple(sorted(kept[slot]))) for slot in sorted(slots))
    )


def _still(before: Dealing | None, slot: int, pairs: list[str]) -> list[str]:
    dealt = before.pairs_of(slot) if before is not None else ()
    return [pair for pair in pairs if pair in dealt]

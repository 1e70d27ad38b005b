"""Accounts for merge slots: which pairs each delivers, and what every sink has [2]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tandem_runtime.protocol.types import Dealing, Header, Slot
from tandem_simulator.oracle.violation import broken


class SlotAccount:
    """Slots and dealings as announced to merges, and the pairs that each sink has received."""

    def __init__(self, sinks: Iterable[str]) -> None:
        self.dealings: dict[int, dict[str, int]] = {}
        """The slot of each pair, by dealing."""
        self.slots: dict[int, Slot] = {}
        self.over: set[int] = set()
        """Slots that are reported as sealed everywhere."""
        self.positions: dict[tuple[str, int], int] = {}
        """The last epoch of each slot at each sink."""
        self.got: dict[tuple[str, int], set[str]] = {}
        """The pairs that a sink has of an epoch."""
        self.whole = dict.fromkeys(sinks, 0)
        """The last epoch of which a sink has every pair."""
        self.forgiving = False

    # --- announcements to merges ----------------------------------------------------------------

    def slot_seen(self, slot: Slot, where: str) -> None:
        """Record a slot announced to a merge: neither its begin nor its end ever changes."""
        known = self.slots.get(slot.number, slot)
        moved = known.first != slot.first or (not known.is_open and known.last != slot.last)
        if moved and not self.forgiving and not slot.is_open:
            broken(6, "slot-changed", f"{known} is {slot} for {where}", where)
        if known.is_open or self.forgiving:
            self.slots[slot.number] = slot

    def dealing_seen(self, dealing: Dealing, where: str) -> None:
        """Record a dealing announced to a merge; every pair is dealt once, permanently."""
        slots = {pair: slot for slot, pairs in dealing.slots for pair in pairs}
        if len(slots) != sum(len(pairs) for _, pairs in dealing.slots):
            broken(2, "dealt-twice", f"{dealing} deals a pair to two slots", where)
        known = self.dealings.setdefault(dealing.number, slots)
        if known != slots and not self.forgiving:
            broken(6, "two-dealings", f"dealing {dealing.number} was {known}, is {slots}", where)
        self.dealings[dealing.number] = slots

    def header_shown(self, header: Header, pairs: Iterable[str], where: str) -> None:
        """Check that a header deals each of its pairs to a slot that delivers its epoch [1]."""
        if self.forgiving:
            return
        for pair in pairs:
            number = self.slot_of(header, pair)
            slot = self.slots.get(number) if number is not None else None
            ended = slot is not None and not slot.delivers(header.epoch)
            if number is None or ended or (slot is not None and slot.first > header.epoch):
                broken(
                    1,
                    "not-dealt",
                    f"epoch {header.epoch} deals {pair} to {slot or number}, by dealing "
                    f"{header.dealing}: {self.dealings.get(header.dealing)}",
                    where,
                    header.epoch,
                    pair,
                )

    def slot_of(self, header: Header, pair: str) -> int | None:
        """The slot that has to deliver a pair's part of an epoch."""
        return 0 if header.dealing == 0 else self.dealings.get(header.dealing, {}).get(pair)

    # --- deliveries -------------------------------------------------------------------------------

    def opened(self, sink: str, slot: int, first: int) -> None:
        """Record the first epoch of a slot at a sink."""
        if (sink, slot) in self.positions:
            broken(2, "opened-twice", f"{sink} gets a second position for slot {slot}", sink)
        self.positions[sink, slot] = first - 1

    def check(self, sink: str, slot: int, header: Header, pairs: Iterable[str]) -> None:
        """Check that a slot delivers its own pairs only, and none once it is sealed."""
        epoch = header.epoch
        if slot in self.over:
            broken(2, "sealed-slot", f"{sink} takes epoch {epoch} of sealed slot {slot}", sink)
        for pair in pairs:
            due = self.slot_of(header, pair)
            if due != slot:
                broken(
                    2,
                    "foreign-pair",
                    f"{sink} gets ({pair}, epoch {epoch}) of slot {slot}, it is dealt to {due}",
                    sink,
                    epoch,
                    pair,
                )

    def taken(self, sink: str, slot: int, epoch: int, pairs: Iterable[str]) -> None:
        """Record that a sink has a slot's part of an epoch."""
        self.positions[sink, slot] = epoch
        got = self.got.setdefault((sink, epoch), set())
        for pair in pairs:
            if pair in got:
                broken(
                    2, "delivered-twice", f"{sink} gets ({pair}, epoch {epoch}) again", sink, epoch
                )
            got.add(pair)

    def advance(self, sink: str, due: Mapping[int, tuple[str, ...]]) -> None:
        """Update the last epoch that a sink has entirely; `due` are the pairs of each epoch."""
        while self.whole[sink] + 1 in due:
            following = self.whole[sink] + 1
            if not self.got.get((sink, following), set()) >= set(due[following]):
                return
            self.whole[sink] = following

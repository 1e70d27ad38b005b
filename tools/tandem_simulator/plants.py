"""Planted bugs: mistakes that the simulator must find.

Each replaces a function of the protocol by a wrong one for as long as a run lasts, so that no
shipped code path knows of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple, cast

from tandem_core.model.states import MemberKind
from tandem_runtime.protocol import lead_generations
from tandem_runtime.protocol import row_order as segments
from tandem_runtime.protocol.effects import Effect, Erase, Key, Send
from tandem_runtime.protocol.election import rebuild, succession
from tandem_runtime.protocol.lead import lane_rules as lead_lanes
from tandem_runtime.protocol.lead import lead
from tandem_runtime.protocol.lead import peer_reports as hearsay
from tandem_runtime.protocol.lead import seat_rules as lead_seats
from tandem_runtime.protocol.lead import views as lead_views
from tandem_runtime.protocol.log import header_log
from tandem_runtime.protocol.log import log_state as book
from tandem_runtime.protocol.log import replicated_log as log
from tandem_runtime.protocol.log.entries import (
    Entry,
    LaneClosed,
    LaneResumed,
    PairsRetired,
    Trimmed,
)
from tandem_runtime.protocol.merge import merge_machine as merge
from tandem_runtime.protocol.messages.peers import CopyEntry, MergeView, SealedCopy, Want
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.replica import replica_machine as replica
from tandem_runtime.protocol.replica import stored_state as held
from tandem_runtime.protocol.split import own_lane as lane
from tandem_runtime.protocol.split import split_machine as split
from tandem_runtime.protocol.states import Bond, LaneState
from tandem_runtime.protocol.types import Header, Lane, LaneId, Peer, Seat, Slot
from tandem_simulator.externals import sinks

Swap = tuple[object, str, object]
"""An owner (module or class), the name of one of its functions, and what to put there."""


class Plant(NamedTuple):
    """A mistake: what it is called, what it does, and how to make it for a while."""

    name: str
    what: str
    apply: Callable[[], AbstractContextManager[None]]


def _substituted(*swaps: Swap) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def apply() -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, replacement in swaps:
                stack.callback(setattr, owner, name, vars(owner)[name])
                setattr(owner, name, replacement)
            yield

    return apply


def _everywhere(original: Callable[..., object], replacement: object) -> tuple[Swap, ...]:
    """Swaps for every module of the protocol that has imported a function by name."""
    return tuple(
        (module, name, replacement)
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith("tandem_runtime.protocol.")
        for name, value in vars(module).items()
        if value is original
    )


def _decision(original: Callable[..., object], replacement: object) -> Swap:
    """Swap one of the decisions that the lead goes through."""
    changed = tuple(replacement if d is original else d for d in vars(lead)["_RECORDS"])
    return lead, "_RECORDS", changed


# --- the header log ---------------------------------------------------------------------------


def _fold_published_headers(self: header_log.HeaderLog) -> book.Book:
    folded = self.snapshot.copy()
    for number, entry in self.entries.items():
        if number <= self.published or not isinstance(entry, Header):
            folded.apply(entry)
    return folded


class _StaleBuddyLog(log.OwnedLog):
    """A log that goes on copying to a follower it has dropped, and counts its answers."""

    former: tuple[str | None, log.Fence] = (None, (0, 0))
    former_acked = 0

    def drop_follower(self) -> None:
        self.former = (self.follower, self.fence)
        self.former_acked = self.acked
        super().drop_follower()

    def copied(self, member: str, fence: log.Fence, through: int, now: int) -> bool:
        if (member, fence) == self.former:
            self.former_acked = max(self.former_acked, through)
            self.acked = max(self.acked, min(through, self.end))
            return True
        return super().copied(member, fence, through, now)


_write = lead.Lead._write


def _write_to_former_too(self: lead.Lead, batch: list[Entry], now: int) -> list[Effect]:
    effects = _write(self, batch, now)
    stale = cast("_StaleBuddyLog", self.log)
    former, fence = stale.former
    if former is not None:
        effects += [
            Send(former, CopyEntry(fence, number, entry, self.stored.published))
            for number, entry in self.stored.entries.items()
            if number > stale.former_acked
        ]
    return effects


def _ask_while_filling(self: log.OwnedLog) -> tuple[int, str | None] | None:
    if self.bond is Bond.FILLING:
        return max(self.wanted, self.view) + 1, self.follower
    asked: tuple[int, str | None] | None = _asking.__get__(self)
    return asked


_asking = log.OwnedLog.asking
_step_down = succession.Succession._step_down
_lead = succession.Succession._lead


def _step_down_remembering(self: Any, now: int) -> None:
    if self.lead is not None:
        self.unfinished = [e for _, e in self.lead.pending if isinstance(e, Header)]
    _step_down(self, now)


def _lead_and_finish(self: Any, place: Any, now: int) -> list[Effect]:
    effects = _lead(self, place, now)
    unfinished = vars(self).pop("unfinished", [])
    return effects + self.lead._write(unfinished, now) if unfinished else effects


def _newest_by_number(headers: Iterable[Header]) -> Header | None:
    return max(headers, key=lambda header: header.epoch, default=None)


def _chain_by_number(tip: Header, headers: Iterable[Header]) -> dict[int, Header]:
    known = {header.epoch: header for header in headers}
    chain = {tip.epoch: tip}
    while (before := known.get(min(chain) - 1)) is not None:
        chain[before.epoch] = before
    return chain


def _on_chain_by_number(chain: dict[int, Header], answer: Present) -> bool:
    return answer.kind is MemberKind.MERGE or answer.committed >= min(chain) - 1


def _never_foreign(_known: book.Book, _report: object) -> bool:
    return False


# --- replicas and merges ----------------------------------------------------------------------


_want = replica.ReplicaMachine._want
_start = replica.ReplicaMachine.__init__


def _drop_on_arrival(
    self: replica.ReplicaMachine, now: int, sender: Peer, message: Want
) -> list[Effect]:
    effects = _want(self, now, sender, message)
    for epoch in message.epochs:
        if self.outbox.pop(epoch, None) is not None:
            effects += [Erase(("outbox", epoch)), Erase(("kept", epoch))]
    return effects


def _start_without_outbox(self: replica.ReplicaMachine, *before: Any, **named: Any) -> None:
    identity, stored, rest = before[:4], before[4], before[5:]
    kept: Mapping[Key, object] = {
        key: value for key, value in stored.keys.items() if key[0] not in ("outbox", "kept")
    }
    cast("Any", _start)(self, *identity, stored._replace(keys=kept), *rest, **named)


def _keep_no_outbox(_self: object, _message: object) -> list[Effect]:
    return []


def _deliver_every_pair(
    _dealings: object, _dealing: int, _slot: int, pairs: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(sorted(pairs))


def _every_merge(known: book.Book, _pair: str, _delivered: int) -> tuple[str, ...]:
    return tuple(known.merges[slot] for slot in sorted(known.merges))


def _claim_to_seal(self: sinks.Sink, slot: int, first: int, last: int) -> bool:
    return self.position(slot, first) >= last


_merge_view = merge.MergeMachine._view


def _go_on_when_sealed(
    self: merge.MergeMachine, now: int, sender: Peer, view: MergeView
) -> list[Effect]:
    """A zombie of a slot that is over and forgotten does not heed that it is."""
    mine = self.slots.get(self.slot)
    if mine is not None and self.slot not in {slot.number for slot in view.slots}:
        view = view.replace(
            active=True, slots=(*view.slots, Slot(number=mine.number, first=mine.first))
        )
    return _merge_view(self, now, sender, view)


def _admit_anything(_position: int, _epoch: int) -> bool:
    return True


# --- lanes --------------------------------------------------------------------------------------


def _last_report(hear: hearsay.Hearsay, which: LaneId, state: Lane) -> SealedCopy:
    report = hear.lanes.get(which)
    if report is None:
        return SealedCopy(which, state.view, state.reach, ())
    notes = tuple(note for note in report.notes if note[0] > state.reach)
    return SealedCopy(which, state.view, max(report.through, state.reach), notes)


_tend_lane = split.SplitMachine._tend_lane
_copy_chunk = lane.OwnLane._copy


def _change_buddy_at_once(self: split.SplitMachine, own: lane.OwnLane, now: int) -> list[Effect]:
    chunks = own.log
    if chunks.follower is not None and chunks.misses_follower(self.settings, now):
        candidate = self.neighbours.next_for_lane()
        if candidate is not None:
            chunks.follower = candidate
            chunks.fence = (chunks.fence[0], chunks.fence[1] + 1)
            chunks.acked = max(chunks.acked, chunks.end - 1)
            chunks.heard = now
    return _tend_lane(self, own, now)


def _copy_from_here_on(self: lane.OwnLane, number: int, version: Any) -> Effect:
    effect = cast("Any", _copy_chunk(self, number, version))
    changed: Effect = effect._replace(message=effect.message.replace(base=number - 1))
    return changed


def _own_when_closed(known: book.Book, partition: str) -> bool:
    owner = known.owners.get(partition)
    closed = owner in known.lanes and known.lanes[owner].state is LaneState.CLOSED
    return lead_lanes_may_get_owner(known, partition) or closed


lead_lanes_may_get_owner = lead_lanes.may_get_owner


def _close_and_go_on(self: book.Book, record: LaneClosed) -> None:
    book.Book._lane_closed(self, record)
    for _, note in record.notes:
        self.marks.update(note.marks)


def _settle_by_owner(known: book.Book, hear: hearsay.Hearsay, now: int) -> Iterator[Entry]:
    """An owner that says that it writes its lane is believed, also once the lane is closed."""
    yield from lead_lanes.settlements(known, hear, now)
    for which, state in known.lanes.items():
        report = hear.lanes.get(which)
        live = report is not None and report.live and not hear.silent(which.split, now)
        if live and state.state is LaneState.CLOSED:
            yield LaneResumed(which)


# --- seats and generations --------------------------------------------------------------------


def _committed_by_name(seat: Seat, hear: hearsay.Hearsay) -> int:
    name = seat.volume.rpartition(".")[0]
    said = [
        heard.report.committed
        for volume, heard in hear.replicas.items()
        if volume.rpartition(".")[0] == name
    ]
    return max([seat.hold, *said])


def _trim_past_joiners(known: book.Book, hear: hearsay.Hearsay) -> Iterator[Entry]:
    point = min(hearsay.delivered_through(known, hear), known.epoch)
    for seats in known.seats.values():
        for seat in seats:
            if seat is not None and seat.verified and not seat.lapsed:
                point = min(point, hearsay.committed(seat, hear))
    if point > known.trim:
        yield Trimmed(point)


def _lapse_anybody(known: book.Book, _hear: object, pair: str, number: int) -> bool:
    return known.seats[pair][number] is not None


def _name_target(known: book.Book, hear: hearsay.Hearsay, _settings: object) -> int:
    target = hear.intent.target if hear.intent else 0
    return target if target in known.generations else known.generation


def _retire_at_cut(known: book.Book, _hear: object, _now: int) -> Iterator[Entry]:
    if known.generation:
        kept = {n for g in known.generations if g >= known.generation for n in known.pairs(g)}
        old = tuple(pair for pair in known.living_pairs() if pair not in kept)
        if old:
            yield PairsRetired(old)


def _plant(name: str, what: str, *swaps: Swap) -> Plant:
    return Plant(name, what, _substituted(*swaps))


_ALL = (
    _plant(
        "forget-unpublished",
        "a new lead forgets headers that it holds but never saw published",
        (header_log.HeaderLog, "fold", _fold_published_headers),
    ),
    _plant(
        "stale-buddy",
        "a lead publishes on an acknowledgement of a buddy that is no longer required",
        (lead, "OwnedLog", _StaleBuddyLog),
        (lead.Lead, "_write", _write_to_former_too),
    ),
    _plant(
        "name-before-fill",
        "a new buddy is named before it has the log",
        (log.OwnedLog, "asking", property(_ask_while_filling)),
    ),
    _plant(
        "old-term",
        "a lead deposed and made lead again finishes a header of its first term",
        (succession.Succession, "_step_down", _step_down_remembering),
        (succession.Succession, "_lead", _lead_and_finish),
    ),
    _plant(
        "rebuild-by-number",
        "a rebuilt header log chooses headers and seats by the number of their epoch",
        (rebuild, "newest", _newest_by_number),
        (rebuild, "chain_to", _chain_by_number),
        (rebuild, "is_on", _on_chain_by_number),
        (lead, "is_foreign", _never_foreign),
    ),
    _plant(
        "ack-on-arrival",
        "a replica drops its outbox when the merge has it, not when it is delivered",
        (replica, "_HANDLERS", {**vars(replica)["_HANDLERS"], Want: _drop_on_arrival}),
    ),
    _plant(
        "no-outbox",
        "results live in memory only; the process restarts after Spark's commit",
        (replica.ReplicaMachine, "__init__", _start_without_outbox),
    ),
    _plant(
        "copy-without-outbox",
        "a joiner copies the checkpoint but not the outbox",
        (held.HeldState, "_keep_outbox", _keep_no_outbox),
    ),
    _plant(
        "lane-order",
        "a replica reads rows lane by lane, as chunks were cut, not by their positions",
        (segments, "by_position", lambda fetched, _: list(fetched)),
    ),
    _plant(
        "blind-sink",
        "a frozen merge thaws and delivers without the position check",
        (sinks, "admits", _admit_anything),
    ),
    _plant(
        "foreign-slot",
        "a slot delivers a pair that is not dealt to it",
        (merge, "pairs_of_slot", _deliver_every_pair),
        (lead_views, "_merges_of", _every_merge),
    ),
    _plant(
        "unsealed-slot",
        "a sink does not seal an ended slot, and a zombie of that slot goes on delivering",
        (sinks.Sink, "seal", _claim_to_seal),
        (merge, "_HANDLERS", {**vars(merge)["_HANDLERS"], MergeView: _go_on_when_sealed}),
    ),
    _plant(
        "close-at-report",
        "a dead split's lane is closed at its last report, not at its buddy's last chunk",
        (lead_lanes, "_buddy_answer", _last_report),
    ),
    _plant(
        "buddy-by-operator",
        "a lane's buddy is changed without filling it and recording it",
        (split.SplitMachine, "_tend_lane", _change_buddy_at_once),
        (lane.OwnLane, "_copy", _copy_from_here_on),
    ),
    _plant(
        "early-successor",
        "a new owner's rows are cut before the old owner's last chunk",
        (lead_lanes, "may_get_owner", _own_when_closed),
        (book, "_APPLY", {**vars(book)["_APPLY"], LaneClosed: _close_and_go_on}),
    ),
    _plant(
        "illegal-move",
        "a lane that was closed is resumed, because its owner still writes it",
        _decision(lead_lanes.settlements, _settle_by_owner),
    ),
    _plant(
        "shared-name",
        "a zombie's acknowledgement counts for its replacement",
        *_everywhere(hearsay.committed, _committed_by_name),
    ),
    _plant(
        "trim-without-joiner",
        "the trim point ignores a holder recorded just before it",
        (lead_seats, "trim_point", _trim_past_joiners),
    ),
    _plant(
        "lapse-both",
        "both replicas of a pair may lapse",
        (lead_seats, "may_lapse", _lapse_anybody),
    ),
    _plant(
        "generation-back",
        "a new lead with an older intent goes back a generation",
        *_everywhere(lead_generations.generation_to_name, _name_target),
    ),
    _plant(
        "early-retire",
        "the old pairs stop at the cut, the new ones die",
        _decision(lead_generations.retirements, _retire_at_cut),
    ),
)

PLANTS: dict[str, Plant] = {plant.name: plant for plant in _ALL}

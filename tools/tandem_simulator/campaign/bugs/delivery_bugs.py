"""Seeded bugs of replicas, merges and sinks: results kept, computed in order, delivered once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tandem_runtime.protocol import row_order
from tandem_runtime.protocol.effects import Effect, Erase, Key
from tandem_runtime.protocol.lead import views
from tandem_runtime.protocol.log import log_state
from tandem_runtime.protocol.merge import known_epochs, merge_machine
from tandem_runtime.protocol.messages.peers import MergeView, Want
from tandem_runtime.protocol.replica import replica_machine, stored_state
from tandem_runtime.protocol.types import Peer, Slot
from tandem_simulator.campaign.bugs.substitution import seeded_bug
from tandem_simulator.externals import sinks

_want = replica_machine.ReplicaMachine._want
_start = replica_machine.ReplicaMachine.__init__


def _drop_on_arrival(
    self: replica_machine.ReplicaMachine, now: int, sender: Peer, message: Want
) -> list[Effect]:
    effects = _want(self, now, sender, message)
    for epoch in message.epochs:
        if self.outbox.pop(epoch, None) is not None:
            effects += [Erase(("outbox", epoch)), Erase(("kept", epoch))]
    return effects


def _start_without_outbox(self: replica_machine.ReplicaMachine, *before: Any, **named: Any) -> None:
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


def _every_merge(known: log_state.LogState, _pair: str, _delivered: int) -> tuple[str, ...]:
    return tuple(known.merges[slot] for slot in sorted(known.merges))


def _claim_to_seal(self: sinks.SimulatedSink, slot: int, first: int, last: int) -> bool:
    return self.position(slot, first) >= last


_merge_view = merge_machine.MergeMachine._view


def _go_on_when_sealed(
    self: merge_machine.MergeMachine, now: int, sender: Peer, view: MergeView
) -> list[Effect]:
    """A zombie of a slot that is over and forgotten ignores that it is sealed."""
    mine = self.slots.get(self.slot)
    if mine is not None and self.slot not in {slot.number for slot in view.slots}:
        view = view.replace(
            active=True, slots=(*view.slots, Slot(number=mine.number, first=mine.first))
        )
    return _merge_view(self, now, sender, view)


def _admit_anything(_position: int, _epoch: int) -> bool:
    return True


BUGS = (
    seeded_bug(
        "ack-on-arrival",
        "a replica drops its outbox when the merge has it, not when it is delivered",
        (
            replica_machine,
            "_HANDLERS",
            {**vars(replica_machine)["_HANDLERS"], Want: _drop_on_arrival},
        ),
    ),
    seeded_bug(
        "no-outbox",
        "results live in memory only; the process restarts after Spark's commit",
        (replica_machine.ReplicaMachine, "__init__", _start_without_outbox),
    ),
    seeded_bug(
        "copy-without-outbox",
        "a joiner copies the checkpoint but not the outbox",
        (stored_state.HeldState, "_keep_outbox", _keep_no_outbox),
    ),
    seeded_bug(
        "lane-order",
        "a replica reads rows lane by lane, as chunks were cut, not by their positions",
        (row_order, "by_position", lambda fetched, _: list(fetched)),
    ),
    seeded_bug(
        "blind-sink",
        "a frozen merge thaws and delivers without the position check",
        (sinks, "admits", _admit_anything),
    ),
    seeded_bug(
        "foreign-slot",
        "a slot delivers a pair that is not dealt to it",
        (known_epochs, "pairs_of_slot", _deliver_every_pair),
        (views, "_merges_of", _every_merge),
    ),
    seeded_bug(
        "unsealed-slot",
        "a sink does not seal an ended slot, and a zombie of that slot goes on delivering",
        (sinks.SimulatedSink, "seal", _claim_to_seal),
        (
            merge_machine,
            "_HANDLERS",
            {**vars(merge_machine)["_HANDLERS"], MergeView: _go_on_when_sealed},
        ),
    ),
)

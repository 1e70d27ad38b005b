"""The ledger: accounts for every source row, and ends the schedule at the first violation.

It shares no code with the protocol, only plain values. It observes the edges: sources, sinks,
volumes, and headers shown to processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from tandem_core.contract.intent import Generation, Intent
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import Chunk, Header, LaneId
from tandem_simulator.engine.configuration import Configuration
from tandem_simulator.externals.shares import keys_of
from tandem_simulator.oracle.changes import ChangeAccount
from tandem_simulator.oracle.expectation import Expectation, Output, brief, name
from tandem_simulator.oracle.holders import Holders
from tandem_simulator.oracle.merge_slots import SlotAccount
from tandem_simulator.oracle.violation import broken

ANSWERED_WITHIN = 1000
"""Milliseconds within which a source's answer reaches its reader."""

Rows = tuple[Output, ...]
Answers = tuple[tuple[str, Rows], ...]


class Ledger:
    """All accounts and checks of a schedule."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.expected = Expectation(configuration)
        self.holders = Holders()
        self.changes = ChangeAccount(configuration.buckets)
        self.header_seen = self.expected.header_seen
        self.generations: dict[int, Generation] = {}
        self.keys_of: dict[str, frozenset[int]] = {}
        self.acknowledged = [0] * len(configuration.partitions)
        self.dealt = SlotAccount(sink for sink, _ in configuration.sinks)
        self.positions = self.dealt.positions
        self.opened = self.dealt.opened
        self.half_way: dict[tuple[str, int, int], dict[Output, str]] = {}
        """Rows of an epoch that is being written to an idempotent sink, with their pair."""
        self.delivered_headers: dict[int, Header] = {}
        """The header of every epoch of which a sink has any part."""
        self.corrupted: dict[tuple[str, int], Rows] = {}
        """Answers that a fault corrupted: they may be delivered, or their twin's."""
        self.lost: list[str] = []
        """Losses that the pipeline itself has reported."""

    # --- generations --------------------------------------------------------------------------

    def generation_made(self, generation: Generation) -> None:
        """Record a generation as the operator wrote it, independent of the lead."""
        self.generations[generation.number] = generation
        for pair in generation.pairs:
            self.keys_of[pair.name] = keys_of(pair.label, self.configuration.buckets)

    def intent_written(self, intent: Intent) -> None:
        """Check an intent that the operator writes, and record its new generations."""
        listed = {pair for pair, _ in self.holders.seats}
        self.changes.written(intent, frozenset() if self.holders.forgiving else listed)
        for generation in intent.generations:
            if generation.number not in self.generations:
                self.generation_made(generation)

    def pair_removed(self, pair: str) -> None:
        """Check that no pair whose state may be needed loses its workload [8]."""
        if not self.holders.forgiving:
            self.changes.removed(pair, (name for name, _ in self.holders.seats))

    # --- sources and chunks -------------------------------------------------------------------

    def acknowledge(self, index: int, position: int) -> None:
        """Record an acknowledgement to a source partition."""
        self.acknowledged[index] = max(self.acknowledged[index], position)

    def chunk_written(self, lane: LaneId, number: int, chunk: Chunk, now: int) -> None:
        """Record a chunk that was written to a volume."""
        if (lane, number) not in self.expected.chunks:
            self._check_idle(lane, chunk, now)
        self.expected.chunk_written(lane, number, chunk)

    def _check_idle(self, lane: LaneId, chunk: Chunk, now: int) -> None:
        """Check that a partition is idle only if its source has nothing to read [7]."""
        for partition, mark in chunk.note.marks:
            available = self.expected.partitions[partition].available
            position = cast("int", mark.position)
            if mark.state is PartitionState.IDLE and position < len(available):
                since = now - available[position]
                if since > ANSWERED_WITHIN:
                    broken(
                        7,
                        "idle-with-rows",
                        f"{lane.split} calls {partition} idle at row {mark.position}, which its "
                        f"source has had for {since} ms",
                        lane.split,
                        subject=partition,
                    )

    def chunk_erased(
        self,
        lane: LaneId,
        number: int,
        where: str,
        disks: Iterable[Mapping[Any, object]],
        *,
        beyond: bool = False,
    ) -> None:
        """Check that a chunk removed from a volume was not needed [5]; `disks` are all volumes.

        If a fault has exceeded the budget, rows of a lane without recorded copies may be lost, even
        if another volume still has some: then `DataLost` has to be reported.
        """
        if self.holders.forgiving:
            return
        epoch = self.expected.epoch_of.get((lane, number))
        if epoch is None:
            if not beyond:
                self._check_uncut(lane, number, where, disks)
        elif epoch > self.holders.trim and not any(("chunk", lane, number) in d for d in disks):
            broken(
                5,
                "erased-untrimmed",
                f"chunk {number} of lane {name(lane)} belongs to epoch {epoch}; its last copy "
                f"is removed while the recorded trim point is {self.holders.trim}",
                where,
                epoch,
                name(lane),
            )

    def _check_uncut(
        self, lane: LaneId, number: int, where: str, disks: Iterable[Mapping[Any, object]]
    ) -> None:
        """Check that acknowledged rows in no epoch are in another chunk [1]."""
        needed = {
            (index, sequence)
            for index, sequence, _, _ in self.expected.chunks[lane, number]
            if self.expected.next[index] <= sequence < self.acknowledged[index]
        }
        if not needed:
            return
        chunks = {key[1:] for disk in disks for key in disk if key[0] == "chunk"}
        for chunk in chunks:
            needed -= {row[:2] for row in self.expected.chunks[chunk]}
        if needed:
            index, sequence = min(needed)
            broken(
                1,
                "erased-uncut",
                f"row {sequence} of {self.expected.by_index[index]} was acknowledged; the last "
                f"copy of it, in chunk {number} of lane {name(lane)}, is removed before any "
                "epoch took it",
                where,
                subject=name(lane),
            )

    # --- replicas -----------------------------------------------------------------------------

    def result(self, pair: str, header: Header, rows: Rows, where: str) -> None:
        """Check an epoch that a replica has computed; both twins must be right [4]."""
        epoch = header.epoch
        if self.holders.forgiving and self.expected.headers.get(epoch) != header:
            # Affected when the header log was rebuilt, and not aware of it yet.
            return
        self.header_seen(header, where)
        right = self.expected.of_pair(epoch, self.keys_of[pair])
        if rows != right:
            broken(
                4,
                "wrong-result",
                f"{where} computes for ({pair}, epoch {epoch}) {difference(right, rows)}",
                where,
                epoch,
                pair,
            )

    def rebuilt(self, last: str, kept: Mapping[int, Header], where: str) -> None:
        """The header log was lost, and continues after the header of this digest.

        The account continues with that header's history if it contains everything delivered.
        Otherwise the pipeline has to report a loss before it shows another header.
        """
        self.holders.forgiving = self.dealt.forgiving = True
        history = (self.expected.lineage.history_of(last) if last else []) or []
        for epoch, header in kept.items():
            if epoch > len(history) or history[epoch - 1] != header:
                broken(
                    6,
                    "no-such-history",
                    f"{where} rebuilds the header log with epoch {epoch} as {brief(header)}, "
                    f"which epoch {len(history)} as it has it never followed",
                    where,
                    epoch,
                )
        delivered = self.delivered_headers
        if max(delivered, default=0) <= len(history) and all(
            history[epoch - 1] == header for epoch, header in delivered.items()
        ):
            self.expected.go_back_to(history)

    def committed(self, volume: str, epoch: int) -> None:
        """Record a committed checkpoint on a volume."""
        self.holders.committed[volume] = epoch

    # --- sinks --------------------------------------------------------------------------------

    def delivered(self, sink: str, epoch: int, answers: Answers, slot: int = 0) -> None:
        """Check a slot's part of an epoch that a transactional sink accepted [1] [2]."""
        self._check_order(sink, slot, epoch)
        self._check_pairs(sink, slot, epoch, tuple(pair for pair, _ in answers))
        for pair, rows in answers:
            right = self.expected.of_pair(epoch, self.keys_of[pair])
            if rows not in (right, self.corrupted.get((pair, epoch))):
                broken(
                    2 if len(rows) > len(right) else 1,
                    "wrong-delivery",
                    f"{sink} gets for ({pair}, epoch {epoch}) {difference(right, rows)}",
                    sink,
                    epoch,
                    pair,
                )
        self._taken(sink, slot, epoch, answers)

    def _taken(self, sink: str, slot: int, epoch: int, answers: Answers) -> None:
        self.delivered_headers.setdefault(epoch, self.expected.headers[epoch])
        self.dealt.taken(sink, slot, epoch, (pair for pair, _ in answers))
        shown = self.expected.headers
        self.dealt.advance(
            sink, {e: self.generations[h.generation].names() for e, h in shown.items()}
        )

    def upserted(self, sink: str, epoch: int, pair: str, row: Output, slot: int = 0) -> None:
        """Check a row that an idempotent sink accepted."""
        self._check_header(sink, epoch)
        self.dealt.check(sink, slot, self.expected.headers[epoch], (pair,))
        right = self.expected.of_pair(epoch, self.keys_of[pair])
        if row not in right and row not in self.corrupted.get((pair, epoch), ()):
            broken(
                2,
                "wrong-delivery",
                f"{sink} gets for ({pair}, epoch {epoch}) {row}, right would be {right}",
                sink,
                epoch,
                pair,
            )
        position = self.positions.get((sink, slot), 0)
        if epoch <= position:
            broken(
                2,
                "delivered-twice",
                f"{sink} stands at {position}, and takes {row} of epoch {epoch}",
                sink,
                epoch,
                pair,
            )
        self.half_way.setdefault((sink, slot, epoch), {})[row] = pair

    def advanced(self, sink: str, epoch: int, answers: Answers, slot: int = 0) -> None:
        """Check that an idempotent sink has all rows of a slot's part of an epoch."""
        self._check_order(sink, slot, epoch)
        self._check_pairs(sink, slot, epoch, tuple(pair for pair, _ in answers))
        there = self.half_way.pop((sink, slot, epoch), {})
        for pair, _ in answers:
            right = self.expected.of_pair(epoch, self.keys_of[pair])
            missing = [row for row in right if row not in there]
            if missing and (pair, epoch) not in self.corrupted:
                broken(
                    1,
                    "wrong-delivery",
                    f"{sink} calls epoch {epoch} delivered without {missing} of {pair}",
                    sink,
                    epoch,
                    pair,
                )
        self._taken(sink, slot, epoch, answers)

    def _check_header(self, sink: str, epoch: int) -> None:
        if epoch > self.expected.through:
            broken(
                6, "no-header", f"{sink} gets epoch {epoch}, which nobody was shown", sink, epoch
            )

    def _check_order(self, sink: str, slot: int, epoch: int) -> None:
        position = self.positions.get((sink, slot), 0)
        if epoch != position + 1:
            broken(
                2 if epoch <= position else 1,
                "delivered-twice" if epoch <= position else "epoch-skipped",
                f"{sink} was delivered to through {position}, and gets epoch {epoch}",
                sink,
                epoch,
            )
        self._check_header(sink, epoch)

    def _check_pairs(self, sink: str, slot: int, epoch: int, pairs: tuple[str, ...]) -> None:
        header = self.expected.headers[epoch]
        names = self.generations[header.generation].names()
        listed = [pair for pair in names if self.dealt.slot_of(header, pair) == slot]
        self.dealt.check(sink, slot, header, (pair for pair in pairs if pair in names))
        if sorted(pairs) != sorted(listed):
            broken(
                2,
                "wrong-pairs",
                f"epoch {epoch} is of generation {header.generation} with {listed} in slot {slot}, "
                f"{sink} gets answers of {pairs}",
                sink,
                epoch,
            )

    # --- the end ------------------------------------------------------------------------------

    def everywhere(self) -> int:
        """The last epoch that every sink has from every pair."""
        return min(self.dealt.whole.values())

    def complete(self) -> bool:
        """Whether the final epoch has reached every sink."""
        return self.expected.final is not None and self.everywhere() >= self.expected.final

    def finish(self) -> None:
        """Check at completion that every row is delivered [1]."""
        if not self.complete():
            broken(
                1,
                "completed-early",
                f"completed, but the final epoch is {self.expected.final} and the sinks stand at "
                f"{self.positions}",
            )
        for partition in self.configuration.partitions:
            due = self.expected.next[partition.number]
            if due != len(partition.rows):
                broken(
                    1,
                    "rows-missing",
                    f"completed with {due} of {len(partition.rows)} rows of {partition.name}",
                    subject=partition.name,
                )
        if self.expected.windows:
            broken(7, "windows-open", f"completed with windows {self.expected.windows} open")


def difference(right: Rows, rows: Rows) -> str:
    """Describe how two accounts of an answer differ."""
    missing = [row for row in right if row not in rows]
    extra = [row for row in rows if row not in right]
    return f"{extra or 'too little'}, right would be {missing or 'none of that'}"

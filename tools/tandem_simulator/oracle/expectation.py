"""Computes the required output of every epoch from headers and source rows.

It shares no code with the protocol or the toy Spark: it reads every header that was shown to any
process and the chunks named in it, and computes the one correct output. That depends on the
headers' positions alone: the rows of the sources from the last header's positions to this one's, by
stream, partition and sequence.
"""

from __future__ import annotations

from typing import cast

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.states import PartitionState
from tandem_runtime.protocol.types import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    Chunk,
    Header,
    LaneId,
    Mark,
    Segment,
)
from tandem_simulator.engine.configuration import Configuration, Row
from tandem_simulator.oracle.lineage import Lineage
from tandem_simulator.oracle.violation import broken

WINDOW = 1000
Output = tuple[object, ...]


class Expectation:
    """The right output of every epoch, and checks of each header on the way to it."""

    def __init__(self, configuration: Configuration) -> None:
        self.streams = configuration.streams
        self.partitions = {p.name: p for p in configuration.partitions}
        self.by_index = [p.name for p in configuration.partitions]
        self.stream_of = [p.stream for p in configuration.partitions]
        self.generations: dict[int, Generation] = {}
        self.chunks: dict[tuple[LaneId, int], tuple[Row, ...]] = {}
        self.changed: set[tuple[LaneId, int]] = set()
        """Chunks that were written twice with different rows."""
        self.lineage = Lineage()
        self._begin()

    def _begin(self) -> None:
        self.headers: dict[int, Header] = {}
        self.seen_at: dict[int, str] = {}
        self.through = 0
        """The last epoch whose output is computed."""
        self.epoch_of: dict[tuple[LaneId, int], int] = {}
        self.next = [0] * len(self.by_index)
        """The next expected sequence of each partition."""
        self.latest = [BEGINNING_OF_TIME] * len(self.by_index)
        self.reach: dict[LaneId, int] = {}
        self.counts: dict[int, int] = {}
        self.windows: dict[tuple[int, int, int], int] = {}
        self.watermarks: list[int] = [BEGINNING_OF_TIME] * len(self.streams)
        self.outputs: dict[int, tuple[Output, ...]] = {0: ()}
        self.final: int | None = None

    def go_back_to(self, history: list[Header]) -> None:
        """Continue after these headers: the header log was lost, and others do not count."""
        self._begin()
        for header in history:
            self.header_seen(header, "the rebuilt header log")

    def chunk_written(self, lane: LaneId, number: int, chunk: Chunk) -> None:
        """Record a chunk that was written to a volume."""
        segments = cast("tuple[Segment, ...]", chunk.payload)
        rows = tuple(row for each in segments for row in cast("tuple[Row, ...]", each.payload))
        known = self.chunks.setdefault((lane, number), rows)
        if known is not rows and known != rows:
            if number <= self.reach.get(lane, 0):
                broken(
                    3,
                    "chunk-changed",
                    f"chunk {number} of lane {name(lane)} was {known}, now somebody writes {rows}",
                    epoch=self.epoch_of[lane, number],
                )
            self.changed.add((lane, number))

    def header_seen(self, header: Header, where: str) -> None:
        """Record a header that was shown to a process."""
        known = self.headers.get(header.epoch)
        if known is header:
            return
        if known is None:
            self.headers[header.epoch] = header
            self.seen_at[header.epoch] = where
            while (following := self.headers.get(self.through + 1)) is not None:
                self._take(following, where)
        elif known != header:
            broken(
                6,
                "two-headers",
                f"epoch {header.epoch} was {brief(known)} for {self.seen_at[header.epoch]}, "
                f"and is {brief(header)} for {where}",
                where,
                header.epoch,
            )

    def _take(self, header: Header, where: str) -> None:
        """Check the next header against its predecessors, and compute its output."""
        self._check_generation(header, where)
        first = list(self.next)
        self._count_rows(self._rows(header, where), header, where)
        self._check_marks(header, where)
        before = self.watermarks
        self._check_watermarks(header, where)
        self.outputs[header.epoch] = self._output(self._between(first, self.next), before)
        self.through = header.epoch
        self.lineage.seen(header, self.headers.get(header.epoch - 1))
        if header.final:
            self.final = header.epoch

    def _check_generation(self, header: Header, where: str) -> None:
        previous = self.headers.get(header.epoch - 1)
        if previous is not None and header.generation < previous.generation:
            broken(
                7,
                "generation-fell",
                f"epoch {previous.epoch} is of generation {previous.generation}, "
                f"epoch {header.epoch} of generation {header.generation}",
                where,
                header.epoch,
            )
        if self.final is not None:
            broken(
                6, "after-the-end", f"epoch {header.epoch} follows final epoch {self.final}", where
            )

    def _rows(self, header: Header, where: str) -> list[Row]:
        rows: list[Row] = []
        for span in header.spans:
            lane, first, last = span.lane, span.first, span.last
            reach = self.reach.get(lane, 0)
            if first != reach + 1 or last < first:
                broken(
                    1,
                    "span-gap",
                    f"epoch {header.epoch} takes chunks {first} to {last} of lane {name(lane)}, "
                    f"earlier epochs took it through {reach}",
                    where,
                    header.epoch,
                    name(lane),
                )
            self.reach[lane] = last
            for number in range(first, last + 1):
                if (lane, number) not in self.chunks or (lane, number) in self.changed:
                    broken(
                        3,
                        "no-such-chunk",
                        f"epoch {header.epoch} names chunk {number} of lane {name(lane)}, which "
                        "was never written or exists in two forms",
                        where,
                        header.epoch,
                        name(lane),
                    )
                self.epoch_of[lane, number] = header.epoch
                rows.extend(self.chunks[lane, number])
        return rows

    def _count_rows(self, rows: list[Row], header: Header, where: str) -> None:
        """Check that each partition's rows occur once and in order [1] [9]."""
        for index, sequence, _, at in rows:
            due = self.next[index]
            if sequence != due:
                broken(
                    1 if sequence > due else 2,
                    "rows-missing" if sequence > due else "rows-twice",
                    f"epoch {header.epoch} holds row {sequence} of {self.by_index[index]}, "
                    f"the next one due is row {due}",
                    where,
                    header.epoch,
                    self.by_index[index],
                )
            self.next[index] = due + 1
            self.latest[index] = max(self.latest[index], at)

    def _between(self, first: list[int], end: list[int]) -> list[Row]:
        """The sources' rows from some positions to others, by stream, partition and sequence."""
        partitions = sorted(self.partitions.values(), key=lambda one: (one.stream, one.name))
        return [row for one in partitions for row in one.rows[first[one.number] : end[one.number]]]

    def _check_marks(self, header: Header, where: str) -> None:
        """Check that a header's marks of a partition agree with its rows."""
        for partition, mark in header.marks:
            index = self.partitions[partition].number
            told = (mark.position, mark.event_time, mark.rows)
            counted = (self.next[index], self.latest[index], self.next[index])
            if told != counted:
                broken(
                    1,
                    "wrong-mark",
                    f"epoch {header.epoch} says {partition} is at {told}, its rows say {counted}",
                    where,
                    header.epoch,
                    partition,
                )
            if mark.state is PartitionState.ENDED and mark.position != len(
                self.partitions[partition].rows
            ):
                broken(
                    1,
                    "ended-early",
                    f"epoch {header.epoch} says {partition} ended at {mark.position} of "
                    f"{len(self.partitions[partition].rows)} rows",
                    where,
                    header.epoch,
                    partition,
                )

    def _check_watermarks(self, header: Header, where: str) -> None:
        """Check that a stream's watermark is its partitions' minimum and never falls [7]."""
        marks = dict(header.marks)
        told = dict(header.watermarks)
        after = []
        for number, stream in enumerate(self.streams):
            before = self.watermarks[number]
            due = max(before, self._lowest(number, marks, before))
            after.append(due)
            if told.get(stream.name, BEGINNING_OF_TIME) != due:
                broken(
                    7,
                    "watermark",
                    f"epoch {header.epoch} puts {stream.name} at {told.get(stream.name)}, "
                    f"its partitions at {due} (before: {before})",
                    where,
                    header.epoch,
                    stream.name,
                )
        self.watermarks = after

    def _lowest(self, number: int, marks: dict[str, Mark], before: int) -> int:
        stream = self.streams[number]
        states = {p: marks[p].state if p in marks else None for p in stream.partitions}
        if all(state is PartitionState.ENDED for state in states.values()):
            return END_OF_TIME
        speaking = [
            p
            for p, state in states.items()
            if state not in (PartitionState.ENDED, PartitionState.IDLE)
        ]
        latest = [self.latest[self.partitions[p].number] for p in speaking]
        return min((at - stream.delay for at in latest), default=before)

    def _output(self, rows: list[Row], watermarks: list[int]) -> tuple[Output, ...]:
        """Count the new rows per key, and emit the windows that the watermark has passed."""
        touched: dict[int, list[tuple[int, int]]] = {}
        for index, sequence, key, at in rows:
            self.counts[key] = self.counts.get(key, 0) + 1
            touched.setdefault(key, []).append((index, sequence))
            window = (self.stream_of[index], key, at - at % WINDOW)
            if window[2] + WINDOW > watermarks[window[0]]:
                self.windows[window] = self.windows.get(window, 0) + 1
        over = sorted(w for w in self.windows if w[2] + WINDOW <= watermarks[w[0]])
        return (
            *((0, key, self.counts[key], tuple(touched[key])) for key in sorted(touched)),
            *((1, *window, self.windows.pop(window)) for window in over),
        )

    def of_pair(self, epoch: int, keys: frozenset[int]) -> tuple[Output, ...]:
        """The correct output of the owner of these keys."""
        return tuple(
            row for row in self.outputs[epoch] if (row[1] if row[0] == 0 else row[2]) in keys
        )


def name(lane: LaneId) -> str:
    """The name of a lane in stories."""
    return f"{lane.split}/{lane.number}"


def brief(header: Header) -> str:
    """Describe a header briefly."""
    spans = ", ".join(f"{name(span.lane)}:{span.first}-{span.last}" for span in header.spans)
    return f"[generation {header.generation}, {spans or 'no rows'}{', final' * header.final}]"

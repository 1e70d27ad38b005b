"""Generates rows from a seed; the row number determines the row, whichever process reads it.

Keys are drawn by rank from a Zipf distribution; all key columns of a row have the same rank. The
event-time column is that of the watermark, else the first TIMESTAMP: row 0 is at the beginning of
2024, time advances at `rowsPerSecond`, and each row is up to `jitter` earlier than that. The other
columns are uniform, see `random_values`.

Keys are dealt to the source partitions by rank, so the order within a key is kept and the rows are
the same for any number of partitions. Positions are numbers of rows of the whole stream: each
partition passes over the rows of the others.
"""

from typing import Any, cast

import numpy as np
import pyarrow as pa

from tandem_core.model.ddl.types import Column, Simple
from tandem_core.model.spec import GeneratorSource, Stream
from tandem_runtime.arrow.schema import arrow_schema, no_rows
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Position
from tandem_runtime.sources.base import LONGEST_WAIT, Batch, Rows
from tandem_runtime.sources.generator.random_values import BASE, Draws, I64Array, drawn, keys
from tandem_runtime.sources.generator.zipf import Zipf
from tandem_runtime.sources.pacing import Clock, Pace

_MOST_ROWS = 32_768
_MICROSECONDS_IN_A_SECOND = 1_000_000
_MICROSECONDS_IN_A_MILLISECOND = 1_000


class RowMaker:
    """Generates rows by their numbers: all of them, or those of one partition."""

    def __init__(self, stream: Stream, source: GeneratorSource, partition: int | None) -> None:
        self._stream = stream
        self._source = source
        self._schema = arrow_schema(stream.schema)
        self._zipf = Zipf(source.keys, source.skew)
        self._event_time = _event_time_column(stream)
        self._partition = partition if source.partitions > 1 else None

    def rows(self, first: int, last: int) -> Rows:
        """Return the rows from `first` up to, but not including, `last`, as a record batch.

        Rows of other partitions are left out.
        """
        if first >= last:
            return no_rows(self._schema)
        draws = Draws(self._source.seed, np.arange(first, last, dtype=np.int64))
        ranks = self._zipf.ranks(draws.uniform("key"))
        if self._partition is not None:
            own = ranks % self._source.partitions == self._partition
            draws, ranks = Draws(self._source.seed, draws.rows[own]), ranks[own]
        columns = [self._column(column, draws, ranks) for column in self._stream.schema.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def newest(self, first: int, last: int) -> int:
        """Return the highest event time of the rows in milliseconds, those left out included.

        Later rows are as late as if there were one partition, whatever the keys of this one.
        """
        if self._stream.watermark is None or first >= last:
            return BEGINNING_OF_TIME
        draws = Draws(self._source.seed, np.arange(first, last, dtype=np.int64))
        return int(self._event_times(draws).max()) // _MICROSECONDS_IN_A_MILLISECOND

    def _column(self, column: Column, draws: Draws, ranks: I64Array) -> Any:
        if column.name == self._event_time:
            return pa.array(self._event_times(draws)).cast(pa.timestamp("us", "UTC"))
        if column.name in self._stream.key:
            return keys(column.type, ranks)
        return drawn(column.type, f"column {column.name}", draws)

    def _event_times(self, draws: Draws) -> I64Array:
        source = self._source
        in_order = draws.rows * _MICROSECONDS_IN_A_SECOND // source.rows_per_second
        jitter = source.jitter.milliseconds * _MICROSECONDS_IN_A_MILLISECOND
        return BASE + in_order - draws.below("jitter", jitter + 1)


class GeneratorPartition:
    """A source partition of a generator."""

    def __init__(
        self, stream: Stream, source: GeneratorSource, partition: int, clock: Clock
    ) -> None:
        self._last = source.rows
        self._clock = clock
        self._pace = Pace(source.rows_per_second)
        self._make = RowMaker(stream, source, partition)

    def read(self, position: Position) -> Batch:
        """Return rows from a number on; see `SourcePartition.read`."""
        first = cast(int, position)
        left = _MOST_ROWS if self._last is None else min(self._last - first, _MOST_ROWS)
        count = self._due(left) if left > 0 else 0
        self._pace.took(count)
        rows = self._make.rows(first, first + count)
        return Batch(
            position,
            first + count,
            rows,
            self._make.newest(first, first + count),
            ended=self._last is not None and first + count >= self._last,
        )

    def close(self) -> None:
        """Do nothing: a generator holds no resources."""

    def _due(self, most: int) -> int:
        due = self._pace.due(self._clock.now(), most)
        if due == 0:
            self._clock.wait(min(self._pace.wait(), LONGEST_WAIT))
            due = self._pace.due(self._clock.now(), most)
        return due


def generated(stream: Stream, first: int, last: int, partition: int | None = None) -> Any:
    """Return the rows of a generator from `first` up to, but not including, `last`, as a table.

    Of one partition if it is given, else of all, so that tests and checks can recompute what a
    pipeline read.
    """
    maker = RowMaker(stream, cast(GeneratorSource, stream.source), partition)
    starts = range(first, last, _MOST_ROWS)
    batches = [maker.rows(start, min(start + _MOST_ROWS, last)) for start in starts]
    return pa.Table.from_batches(batches, schema=arrow_schema(stream.schema))


def _event_time_column(stream: Stream) -> str | None:
    if stream.watermark is not None:
        return stream.watermark.column
    times = (c.name for c in stream.schema.columns if c.type is Simple.TIMESTAMP)
    return next(times, None)

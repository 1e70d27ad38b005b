"""Rebuilds an epoch from its sources: the same bytes that its replicas had.

The rows of an epoch depend only on the positions of its header and of the header before it in each
source partition. So both headers, the pipeline and its sources are all that is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tandem_core.contract.partitions import partitions_of
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import Stream
from tandem_core.routing.function import OwnedKeys
from tandem_runtime.protocol.effects import Select
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Header, Mark
from tandem_runtime.services.partition_reader import with_hashes
from tandem_runtime.sources.base import BEGINNING
from tandem_runtime.sources.replay import replay
from tandem_runtime.spark.epochs.inbox import write_stream
from tandem_runtime.volume.chunks import held, share_named

_UNREAD = Mark(position=BEGINNING, event_time=BEGINNING_OF_TIME)


def replay_epoch(
    pipeline: Pipeline, before: Header | None, header: Header, select: Select
) -> dict[str, Any]:
    """The files of an epoch in the inbox of a pair, by stream.

    `before` is the header of the previous epoch, None for the first. `select` is the pair's share.

    Raises:
        NotReplayable: a source no longer has the rows that were read.
        OSError: a source cannot be read now.
    """
    share = share_named(select.function.form, select.label)
    first = dict(before.marks) if before is not None else {}
    last, watermarks = dict(header.marks), dict(header.watermarks)
    files = {}
    for stream in pipeline.spec.streams:
        rows = _rows(stream, first, last, share)
        sink = pa.BufferOutputStream()
        write_stream(sink, stream, rows, watermarks.get(stream.name))
        files[stream.name] = sink.getvalue()
    return files


def _rows(
    stream: Stream, first: Mapping[str, Mark], last: Mapping[str, Mark], share: OwnedKeys | None
) -> list[Any]:
    """The rows of a stream that belong to a share, by partition and position."""
    rows = [
        batch
        for partition in sorted(partitions_of(stream))
        if partition in last
        for batch in replay(stream, partition, first.get(partition, _UNREAD), last[partition])
    ]
    if share is None:
        return rows
    return [held(with_hashes(batch, stream.key), share) for batch in rows]

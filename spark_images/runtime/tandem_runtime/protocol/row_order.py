"""Orders the rows of an epoch: by source partition, and by their place in it.

The order does not depend on chunks, lanes or owners: the content of an epoch is defined by the
source positions in its header alone [3] [4].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from tandem_runtime.protocol.types import Header


class Placed(Protocol):
    """Consecutive rows of one source partition."""

    @property
    def partition(self) -> str:
        """Source partition of the rows."""

    @property
    def ordinal(self) -> int:
        """Number of rows of the partition before the first row."""

    @property
    def rows(self) -> int:
        """Number of rows read, including those of other pairs' shares."""


S = TypeVar("S", bound=Placed)


class RowsOutOfPlace(Exception):
    """Raised if rows of an epoch are missing or duplicated."""


def row_ends(header: Header) -> dict[str, int]:
    """Returns the number of rows of each source partition through the end of an epoch."""
    return {partition: mark.rows for partition, mark in header.marks}


def by_position(segments: Iterable[S], row_ends: Mapping[str, int]) -> list[S]:
    """Returns the segments of one epoch in the order in which their rows are read.

    Raises:
        RowsOutOfPlace: a partition's segments have a gap or an overlap, or do not end where the
            epoch does.
    """
    ordered = sorted(segments, key=lambda one: (one.partition, one.ordinal))
    ends: dict[str, int] = {}
    for segment in ordered:
        due = ends.get(segment.partition, segment.ordinal)
        if segment.ordinal != due:
            raise RowsOutOfPlace(
                f"row {due} of {segment.partition} is due, and row {segment.ordinal} comes"
            )
        ends[segment.partition] = due + segment.rows
    for partition, end in ends.items():
        if end != row_ends.get(partition):
            raise RowsOutOfPlace(
                f"the epoch has {partition} up to row {row_ends.get(partition)}, "
                f"and what was fetched ends at row {end}"
            )
    return ordered

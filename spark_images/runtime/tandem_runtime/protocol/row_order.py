"""The order of an epoch's rows: by source partition and by their place in it.

Chunk borders, lanes and owners do not show: what an epoch holds depends on the positions that its
header tells, and on nothing else [3] [4].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from tandem_runtime.protocol.types import Header


class Placed(Protocol):
    """Rows of one source partition that follow each other."""

    @property
    def partition(self) -> str:
        """Whose rows they are."""

    @property
    def ordinal(self) -> int:
        """Rows of the partition before the first one."""

    @property
    def rows(self) -> int:
        """How many were taken in, also of those that are somebody else's share."""


S = TypeVar("S", bound=Placed)


class RowsOutOfPlace(Exception):
    """Rows of an epoch are missing or come twice."""


def row_ends(header: Header) -> dict[str, int]:
    """Rows of each source partition up to the end of an epoch, since the beginning."""
    return {partition: mark.rows for partition, mark in header.marks}


def by_position(segments: Iterable[S], row_ends: Mapping[str, int]) -> list[S]:
    """Segments of one epoch, in the order in which their rows are read.

    Raises:
        RowsOutOfPlace: a partition's segments do not follow each other, or end elsewhere than the
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

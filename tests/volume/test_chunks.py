"""A chunk as bytes, shares of it, and an epoch's rows put together from chunks."""

import random
from typing import Any

import pytest
from tests.volume.builders import segment

from tandem_core.contract.intent import Function
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of, to_bytes
from tandem_runtime.protocol.effects import Select
from tandem_runtime.protocol.row_order import RowsOutOfPlace
from tandem_runtime.protocol.types import Chunk, Header, Mark, Note, Segment
from tandem_runtime.volume.chunks import (
    HASH,
    chunk_bytes,
    epoch_rows,
    read_note,
    read_segments,
    share_of,
)

NOTE = Note(300, (("payments/0", Mark(("a.json", 17), 5, rows=3)),))
FUNCTION = RoutingFunction.plain(["pair-0", "pair-1", "pair-2"])


def chunk(*segments: Segment) -> Any:
    return chunk_bytes(Chunk(NOTE, segments))


def select(pair: str, function: RoutingFunction = FUNCTION) -> Select:
    return Select(Function(digest_of(function), to_bytes(function)), pair)


def ending(rows: dict[str, int]) -> Header:
    """An epoch that has the partitions up to so many rows."""
    marks = tuple((name, Mark(0, 0, rows=count)) for name, count in rows.items())
    return Header(1, 1, (), marks, (), 0)


def amounts(batches: list[Any]) -> list[int]:
    return [amount for batch in batches for amount in batch.column("amount").to_pylist()]


def test_chunk_holds_one_segment_per_source_partition() -> None:
    form = chunk(
        segment("a/1", 0, 2), segment("b/0", 9, 1), segment("a/0", 5, 1), segment("a/1", 2, 3)
    )
    assert read_note(form) == NOTE
    found = [
        (one.stream, one.partition, one.position, one.ordinal, one.rows, amounts(one.batches))
        for one in read_segments(form)
    ]
    assert found == [
        ("a", "a/1", ("at", 0), 0, 5, [0, 1, 2, 3, 4]),
        ("b", "b/0", ("at", 9), 9, 1, [9]),
        ("a", "a/0", ("at", 5), 5, 1, [5]),
    ]


def test_position_advanced_without_rows_makes_no_segment() -> None:
    form = chunk(segment("a/0", 4, 0))
    assert (read_note(form), list(read_segments(form))) == (NOTE, [])


def test_shares_of_all_pairs_make_up_chunk() -> None:
    form = chunk(segment("a/0", 0, 500), segment("a/1", 70, 300))
    found: dict[str, list[int]] = {"a/0": [], "a/1": []}
    for pair in FUNCTION.pairs:
        part = share_of(form, select(pair))
        assert read_note(part) == NOTE
        for one in read_segments(part):
            taken = amounts(one.batches)
            assert taken == sorted(taken) != []
            found[one.partition] += taken
            assert one.rows == {"a/0": 500, "a/1": 300}[one.partition]
    assert sorted(found["a/0"]) == list(range(500))
    assert sorted(found["a/1"]) == list(range(70, 370))


def test_share_keeps_segment_without_rows() -> None:
    empty = [
        one
        for pair in FUNCTION.pairs
        for one in read_segments(share_of(chunk(segment("a/0", 0, 1)), select(pair)))
        if amounts(one.batches) == []
    ]
    assert [one.rows for one in empty] == [1, 1]


def test_shares_contain_no_hashes() -> None:
    form = chunk(segment("a/0", 0, 50))
    assert all(HASH not in b.schema.names for one in read_segments(form) for b in one.batches)
    part = share_of(form, select("pair-0"))
    assert HASH.encode() in bytes(form)
    assert HASH.encode() not in bytes(part)


def test_single_pair_gets_chunk_unchanged() -> None:
    form = chunk(segment("a/0", 0, 5))
    only = select("pair-0", RoutingFunction.plain(["pair-0"]))
    assert share_of(form, only) is form


def test_rows_are_read_by_partition_and_position_regardless_of_chunks() -> None:  # [4]
    order = random.Random(3)  # noqa: S311
    for _ in range(20):
        cuts = {
            name: sorted(order.sample(range(1, 60), order.randrange(5))) for name in ("a/0", "a/1")
        }
        pieces = [
            segment(name, first, last - first)
            for name, borders in cuts.items()
            for first, last in zip([0, *borders], [*borders, 60], strict=True)
        ]
        order.shuffle(pieces)
        found = epoch_rows([chunk(piece) for piece in pieces], ending({"a/0": 60, "a/1": 60}))
        assert amounts(found["a"]) == [*range(60), *range(60)]


@pytest.mark.parametrize("second", [(2, 3), (4, 1)])
def test_epoch_with_missing_or_repeated_rows_raises(second: tuple[int, int]) -> None:
    with pytest.raises(RowsOutOfPlace):
        epoch_rows(
            [chunk(segment("a/0", *second)), chunk(segment("a/0", 0, 3))], ending({"a/0": 5})
        )


def test_epoch_without_its_last_rows_raises() -> None:
    with pytest.raises(RowsOutOfPlace):
        epoch_rows([chunk(segment("a/0", 0, 3))], ending({"a/0": 5}))

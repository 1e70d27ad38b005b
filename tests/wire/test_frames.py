from pathlib import Path
from typing import Any

import pytest

from tandem_core.contract.records import Tagged, Undecodable, encode
from tandem_runtime.protocol.messages.peers import StateCopied
from tandem_runtime.wire.frames import (
    Assembly,
    FramePart,
    Tree,
    UnknownMessage,
    message_frame,
    part_frame,
)

MESSAGE = StateCopied("pair-0", 4, None, None, (), ())


class Later(Tagged):
    """A message that a later version may send."""

    number: int


def take(assembly: Assembly, *parts: FramePart) -> None:
    for part in parts:
        assert assembly.take(part_frame(part), part.data) is None


def tree_of(assembly: Assembly, content: bytes) -> Tree:
    take(assembly, FramePart(0, "state/0/1.delta", content))
    message: Any = assembly.take(message_frame(MESSAGE), None)
    (tree,) = message.payload
    assert isinstance(tree, Tree)
    return tree


def test_tree_is_deleted_with_its_last_reference(tmp_path: Path) -> None:  # [12]
    tree = tree_of(Assembly(tmp_path), b"x")
    assert (tree.path / "state/0/1.delta").read_bytes() == b"x"
    del tree
    assert list(tmp_path.iterdir()) == []


def test_moved_tree_is_kept(tmp_path: Path) -> None:
    tree = tree_of(Assembly(tmp_path / "incoming"), b"x")
    tree.move(tmp_path / "spark")
    assert tree.path == tmp_path / "spark"
    del tree
    assert (tmp_path / "spark/state/0/1.delta").read_bytes() == b"x"
    assert list((tmp_path / "incoming").iterdir()) == []


def test_unfinished_tree_is_deleted_with_its_stream(tmp_path: Path) -> None:
    assembly = Assembly(tmp_path)
    take(assembly, FramePart(0, "a", b"x"), FramePart(1, "b", b"y"))
    assert len(list(tmp_path.iterdir())) == 2
    assembly.drop()
    assert list(tmp_path.iterdir()) == []


def test_trees_of_consecutive_streams_do_not_mix(tmp_path: Path) -> None:
    trees = [tree_of(Assembly(tmp_path), bytes([number])) for number in range(10)]
    found = [(tree.path / "state/0/1.delta").read_bytes() for tree in trees]
    assert found == [bytes([number]) for number in range(10)]


def test_bytes_part_cannot_become_tree(tmp_path: Path) -> None:
    assembly = Assembly(tmp_path)
    take(assembly, FramePart(0, None, b"x"))
    with pytest.raises(Undecodable):
        take(assembly, FramePart(0, "a", b"y"))


def test_parts_of_unknown_message_are_discarded_before_next(tmp_path: Path) -> None:
    assembly = Assembly(tmp_path)
    take(assembly, FramePart(0, "a", b"x"), FramePart(1, None, b"y"))
    with pytest.raises(UnknownMessage):
        assembly.take(message_frame(Later(1)), None)
    assert list(tmp_path.iterdir()) == []
    assert assembly.take(message_frame(MESSAGE), None) == MESSAGE


def test_known_message_with_wrong_fields_is_undecodable_but_not_unknown(tmp_path: Path) -> None:
    wrong = encode({"type": "StateCopied", "pair": 5})
    with pytest.raises(Undecodable) as found:
        Assembly(tmp_path).take(wrong, None)
    assert not isinstance(found.value, UnknownMessage)

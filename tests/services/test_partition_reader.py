"""A source partition's reader: what it answers, also when something cannot be read or stored."""

import errno
import os
import queue
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from tests.sources.builders import files_stream, json_lines, write

from tandem_runtime.protocol.messages.peers import SourceRows
from tandem_runtime.protocol.types import Position
from tandem_runtime.services import partition_reader
from tandem_runtime.services.event_loop import EventLoop, Failure
from tandem_runtime.services.partition_reader import Reader
from tandem_runtime.sources.base import Rejected
from tandem_runtime.sources.dead_letters import DeadLetters
from tandem_runtime.sources.factory import open_partition

PARTITION = "payments/0"


class Asker:
    """Asks a reader of a directory's files, and takes its answers as a loop does."""

    def __init__(self, directory: Path, letters: DeadLetters) -> None:
        stream = files_stream(directory, schema="user STRING", bounded=False)
        self.answers: queue.SimpleQueue[SourceRows | Failure] = queue.SimpleQueue()
        self.reader = Reader(
            stream,
            PARTITION,
            lambda: open_partition(stream, PARTITION),
            letters,
            cast("EventLoop", self),
        )

    def tell(self, answer: SourceRows) -> None:
        self.answers.put(answer)

    def fail(self, failure: Failure) -> None:
        self.answers.put(failure)

    def tell_event(self, *_: str) -> None:
        """Events have their tests among watches."""

    def ask(self, position: Position) -> SourceRows:
        self.reader.pull(position)
        answer = self.answers.get(timeout=120)
        assert isinstance(answer, SourceRows)
        return answer


class NoRoom(DeadLetters):
    """The disk is full for the first letter."""

    full = True

    def add(self, partition: str, rejected: Iterable[Rejected]) -> None:
        if self.full:
            self.full = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().add(partition, rejected)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_reader, "RETRY_SECONDS", 0)


def test_unreadable_source_is_reported_and_read_later(tmp_path: Path) -> None:
    asker = Asker(tmp_path / "later", DeadLetters(tmp_path / "letters", "payments"))
    answer = asker.ask(0)
    assert (answer.unreadable, answer.position, answer.end, answer.rows) == (True, 0, 0, 0)
    write(tmp_path / "later", "a.json", json_lines(["a"]))
    answer = asker.ask(0)
    assert (answer.unreadable, answer.rows) == (False, 1)


def test_reject_that_cannot_be_stored_is_stored_later(tmp_path: Path) -> None:
    """A file that is left out is found once, and stays to be told until it is."""
    letters = NoRoom(tmp_path / "letters", "payments")
    source = tmp_path / "source"
    source.mkdir()
    (source / os.fsdecode(b"a\xff.json")).write_bytes(json_lines(["a"]))
    asker = Asker(source, letters)
    assert asker.ask(0).unreadable
    assert letters.count(PARTITION) == 0
    assert not asker.ask(0).unreadable
    assert letters.count(PARTITION) == 1


def test_reader_counts_earlier_rejects(tmp_path: Path) -> None:
    path = tmp_path / "letters"
    DeadLetters(path, "payments").add(PARTITION, [Rejected("a.json", 0, "wrong")])
    letters = DeadLetters(path, "payments")
    write(tmp_path / "source", "a.json", json_lines(["a"]))
    Asker(tmp_path / "source", letters).ask(0)
    assert letters.count(PARTITION) == 1

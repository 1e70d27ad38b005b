"""A source partition's reader: what it answers, also when something cannot be read or stored."""

import queue
from pathlib import Path

import pytest
from tests.sources.builders import files_stream, json_lines, write

from tandem_runtime.protocol.messages import SourceRows
from tandem_runtime.services import readers
from tandem_runtime.services.node import Failure
from tandem_runtime.services.readers import Reader
from tandem_runtime.sources.dead_letters import DeadLetters
from tandem_runtime.sources.opening import open_partition

PARTITION = "payments/0"


class Asker:
    """Asks a reader of a directory's files, and takes its answers."""

    def __init__(self, directory: Path, letters: DeadLetters) -> None:
        stream = files_stream(directory, schema="user STRING")
        self.answers: queue.SimpleQueue[SourceRows | Failure] = queue.SimpleQueue()
        self.reader = Reader(
            stream,
            PARTITION,
            lambda: open_partition(stream, PARTITION),
            letters,
            self.answers.put,
            self.answers.put,
        )

    def ask(self, position: object) -> SourceRows:
        self.reader.pull(position)
        answer = self.answers.get(timeout=10)
        assert isinstance(answer, SourceRows)
        return answer


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "RETRY_SECONDS", 0)


def test_a_source_that_cannot_be_read_is_told_and_read_later(tmp_path: Path) -> None:
    asker = Asker(tmp_path / "later", DeadLetters(tmp_path / "letters", "payments"))
    answer = asker.ask(0)
    assert (answer.unreadable, answer.position, answer.end, answer.rows) == (True, 0, 0, 0)
    write(tmp_path / "later", "a.json", json_lines(["a"]))
    answer = asker.ask(0)
    assert (answer.unreadable, answer.rows) == (False, 1)

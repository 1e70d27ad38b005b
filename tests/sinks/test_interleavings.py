"""Merges that deliver at the same time, freeze and die between any two steps.

Every operation on the file system is a step. A schedule says who takes the next one. The merges
have different answers to each epoch, some of them empty, so that a mixture would show; meanwhile
somebody takes finished files away.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough
from tests.sinks.builders import beside, opened, results, table

EPOCHS = 3
MERGES = 3
STEPS = ("rename", "exists", "unlink", "iterdir", "open", "mkdir", "is_dir", "read_text", "touch")


class Killed(BaseException):
    """The process is gone; whatever it would still do, it cannot."""


class Stepped(threading.Thread):
    """Works on a directory, one step each time it is told to."""

    def __init__(self, number: int, directory: Path) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.directory = directory
        self.killed = False
        self.finished = False
        self._go = threading.Semaphore(0)
        self._stands = threading.Semaphore(0)

    def run(self) -> None:
        try:
            self.pause()
            self.work()
        except Killed:
            pass
        finally:
            self.finished = True
            self._stands.release()

    def work(self) -> None:
        raise NotImplementedError

    def pause(self) -> None:
        """Before each step: wait until it may be taken."""
        if not self.killed:
            self._stands.release()
            self._go.acquire()
        if self.killed:
            raise Killed

    def step(self) -> None:
        """Let it take one step, and wait until it stands before the next."""
        if not self.finished:
            self._go.release()
            self._stands.acquire()

    def begin(self) -> None:
        self.start()
        self._stands.acquire()

    def kill(self) -> None:
        self.killed = True
        self.step()
        self.join()

    def finish(self) -> None:
        while not self.finished:
            self.step()
        self.join()


class Merge(Stepped):
    """Delivers all epochs."""

    def work(self) -> None:
        sink = opened(self.directory)
        while (position := sink.position()) < EPOCHS:
            sink.deliver(position + 1, answer(self.number, position + 1))


def answer(merge: int, epoch: int) -> list[tuple[str, Any]]:
    """Rows that tell whose they are; each merge has an epoch for which it has none."""
    rows = 0 if epoch % MERGES == merge else merge + 1
    return [("pair-0", table(*[merge] * rows)), ("pair-1", table(*[merge] * rows))]


def rows_in(merge: int, epoch: int) -> int:
    return sum(rows.num_rows for _, rows in answer(merge, epoch))


@contextmanager
def stepwise(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make every operation on a path a step of the thread that does it."""

    def stepping(operation: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **named: Any) -> Any:
            me = threading.current_thread()
            if isinstance(me, Stepped):
                me.pause()
            return operation(*arguments, **named)

        return stepped

    with patch.context() as inner:
        for name in STEPS:
            inner.setattr(Path, name, stepping(getattr(Path, name)))
        yield


@thorough(60)
@given(
    schedule=st.lists(
        st.tuples(st.integers(0, MERGES - 1), st.sampled_from([1, 1, 2, 5, 20])), max_size=60
    ),
    deaths=st.sets(st.integers(0, MERGES - 1), max_size=MERGES - 1),
    takes_away=st.booleans(),
)
def test_every_epoch_is_visible_once_and_whole(
    tmp_path_factory: pytest.TempPathFactory,
    schedule: list[tuple[int, int]],
    deaths: set[int],
    takes_away: bool,
) -> None:
    directory = tmp_path_factory.mktemp("out")
    taken: list[tuple[str, list[Any]]] = []
    merges = [Merge(number, directory) for number in range(MERGES)]

    def take_away() -> None:
        for name, rows in results(directory).items():
            taken.append((name, rows))
            (directory / name).unlink()

    with stepwise(pytest.MonkeyPatch()):
        for merge in merges:
            merge.begin()
        for number, steps in schedule:
            for _ in range(steps):
                merges[number].step()
            if takes_away:
                take_away()
        for number in deaths:
            merges[number].kill()
        for merge in merges:
            merge.finish()
    take_away()
    position = opened(directory)
    assert position.position() == EPOCHS
    assert_each_epoch_once(taken, position.rows_out)
    assert len(beside(directory)) == 1


def assert_each_epoch_once(taken: list[tuple[str, list[Any]]], total: int) -> None:
    """Files are those of different epochs, each with all rows of one merge's answer."""
    names = [name for name, _ in taken]
    assert names == sorted(set(names))
    for name, rows in taken:
        epoch = int(name.partition(".")[0])
        (merge,) = {row["n"] for row in rows}
        assert {row["_epoch"] for row in rows} == {epoch}
        assert len(rows) == rows_in(merge, epoch)
    assert total == sum(len(rows) for _, rows in taken)
    missing = set(range(1, EPOCHS + 1)) - {int(name.partition(".")[0]) for name in names}
    assert all(any(rows_in(merge, epoch) == 0 for merge in range(MERGES)) for epoch in missing)

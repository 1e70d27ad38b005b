"""A display that draws in a thread of its own, so that nobody waits for it."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tandem.local.display import display_thread
from tandem.local.display.display_thread import MOST_WORDS, DisplayThread
from tandem.local.display.snapshot import DisplaySnapshot, Event
from tandem.policy.snapshot import Snapshot
from tandem_core.model.states import EventReason
from tandem_core.model.status import Status

EVENT = Event("2024-01-01T12:30:00.000Z", EventReason.FAILOVER, "pair-0", "")
PICTURE = DisplaySnapshot("spending", Status(), Snapshot(0.0, ()), None, 0.0, 0.0, (), 0.0, "")
LONG = 120.0
"""Seconds after which a test fails instead of waiting on."""


class Stuck:
    """A screen that takes nothing until it is released, then everything."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.reached = threading.Event()
        self.shown: list[float] = []
        self.said: list[str] = []
        self.looks = 0
        self.closed = False

    def show(self, picture: DisplaySnapshot) -> None:
        self.shown.append(picture.running_for)

    def tell(self, event: Event) -> None:
        self.said.append(event.subject)

    def warn(self, text: str) -> None:
        self.said.append(text)

    def print_rows(self) -> None:
        self.looks += 1
        self.reached.set()
        assert self.released.wait(LONG)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def screen() -> Iterator[Stuck]:
    screen = Stuck()
    yield screen
    screen.released.set()


def at(second: float) -> DisplaySnapshot:
    return replace(PICTURE, running_for=second)


def test_blocked_screen_does_not_block_callers(screen: Stuck) -> None:
    display = DisplayThread(screen)
    assert screen.reached.wait(LONG)
    for second in range(3):
        display.show(at(second))
        display.tell(replace(EVENT, subject=f"event {second}"))
        display.warn(f"warning {second}")
    assert (screen.shown, screen.said) == ([], [])
    screen.released.set()
    display.close()
    assert screen.shown == [2]
    assert screen.said == [f"{kind} {n}" for n in range(3) for kind in ("event", "warning")]
    assert screen.closed


def test_display_queue_is_bounded(screen: Stuck) -> None:  # [12]
    display = DisplayThread(screen)
    assert screen.reached.wait(LONG)
    for n in range(MOST_WORDS + 5):
        display.warn(str(n))
    screen.released.set()
    display.close()
    assert screen.said == [str(n) for n in range(5, MOST_WORDS + 5)]


def test_rows_are_polled_between_updates(screen: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display_thread, "ROWS_EVERY", 0.001)
    screen.released.set()
    display = DisplayThread(screen)
    until(lambda: screen.looks > 3)
    display.close()


def until(condition: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(int(LONG / 0.01)):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not come about")


class Broken(Stuck):
    """A screen whose pipe is broken when it is shown something for the first time."""

    def show(self, picture: DisplaySnapshot) -> None:
        super().show(picture)
        if len(self.shown) == 1:
            raise BrokenPipeError


def test_drawing_error_is_raised_on_next_show() -> None:
    screen = Broken()
    screen.released.set()
    display = DisplayThread(screen)
    display.show(at(0))
    looks = screen.looks
    until(lambda: bool(screen.shown) and screen.looks > looks + 2)
    with pytest.raises(BrokenPipeError):
        display.show(at(1))
    display.show(at(2))
    display.close()
    assert screen.shown[-1] == 2


def test_drawing_error_is_raised_on_close() -> None:
    screen = Broken()
    screen.released.set()
    display = DisplayThread(screen)
    display.show(at(0))
    with pytest.raises(BrokenPipeError):
        display.close()
    assert screen.closed

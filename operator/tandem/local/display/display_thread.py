"""A display that does not block the supervisor.

A thread of its own draws: a stopped terminal, or a pipe without a reader, must not keep the
supervisor from replacing members that failed.
"""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tandem.local.display.snapshot import DisplaySnapshot, Event

ROWS_EVERY = 0.2
"""Seconds between two polls for rows of console sinks."""

MOST_WORDS = 1000
"""Events and warnings that are queued for a slow display; beyond that the oldest are dropped.
The files in the pipeline's directory have them too."""


class Screen(Protocol):
    """Draws the display; its methods may block."""

    def show(self, picture: DisplaySnapshot) -> None:
        """Show the current snapshot."""

    def tell(self, event: Event) -> None:
        """Show an event once."""

    def warn(self, text: str) -> None:
        """Show a warning."""

    def print_rows(self) -> None:
        """Print new rows of console sinks."""

    def close(self) -> None:
        """Print what is left."""


class DisplayThread:
    """Draws on a screen from another thread, which alone uses the screen from then on.

    Only the newest picture is drawn. The next `show`, or `close`, raises an error of the thread;
    the thread keeps drawing.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._changed = threading.Condition()
        self._words: deque[Callable[[], None]] = deque(maxlen=MOST_WORDS)
        self._picture: DisplaySnapshot | None = None
        self._closing = False
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="display", daemon=True)
        self._thread.start()

    def show(self, picture: DisplaySnapshot) -> None:
        """Queue a picture to be drawn next.

        Raises:
            Exception: an earlier request could not be drawn.
        """
        with self._changed:
            self._picture = picture
            self._changed.notify()
        self._raise_problem()

    def tell(self, event: Event) -> None:
        """Queue an event."""
        self._say(partial(self._screen.tell, event))

    def warn(self, text: str) -> None:
        """Queue a warning."""
        self._say(partial(self._screen.warn, text))

    def close(self) -> None:
        """Wait until everything is drawn: at the end of a run nothing else is left to do.

        Raises:
            Exception: something could not be drawn.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._raise_problem()

    def _say(self, word: Callable[[], None]) -> None:
        with self._changed:
            self._words.append(word)
            self._changed.notify()

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._words or self._picture or self._closing, ROWS_EVERY
                )
                words, picture, closing = tuple(self._words), self._picture, self._closing
                self._words.clear()
                self._picture = None
            try:
                self._draw(words, picture, closing=closing)
            except Exception as problem:  # noqa: BLE001 - raised again in the caller
                self._problem = problem

    def _draw(
        self,
        words: tuple[Callable[[], None], ...],
        picture: DisplaySnapshot | None,
        *,
        closing: bool,
    ) -> None:
        try:
            self._screen.print_rows()
            for word in words:
                word()
            if picture is not None:
                self._screen.show(picture)
        finally:
            if closing:
                self._screen.close()

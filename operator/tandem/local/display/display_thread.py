"""A display that nobody waits for.

Drawing is done by a thread of its own: a terminal that was stopped, or a pipe that nobody reads,
must not keep the supervisor from replacing members that died.
"""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tandem.local.display.snapshot import DisplaySnapshot, Event

ROWS_EVERY = 0.2
"""Seconds between two looks for rows of console sinks."""

MOST_WORDS = 1000
"""Events and warnings that wait for a display that is behind; beyond them the oldest are dropped.
They stand in the directory of the pipeline, too."""


class Screen(Protocol):
    """What draws, and may take as long as it likes."""

    def show(self, picture: DisplaySnapshot) -> None:
        """Show what is now."""

    def tell(self, event: Event) -> None:
        """Tell of an event once."""

    def warn(self, text: str) -> None:
        """Tell of something that the user should know."""

    def print_rows(self) -> None:
        """Print the rows of console sinks that came since."""

    def close(self) -> None:
        """Print what is left."""


class DisplayThread:
    """Has a screen drawn on from another thread, which alone uses it from here on.

    Of pictures only the newest is drawn. A problem of the thread is raised by the next `show`, or
    by `close`, and does not keep it from trying again.
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
        """Have a picture drawn next.

        Raises:
            Exception: what was asked for before could not be drawn.
        """
        with self._changed:
            self._picture = picture
            self._changed.notify()
        self._raise_problem()

    def tell(self, event: Event) -> None:
        """Have an event told."""
        self._say(partial(self._screen.tell, event))

    def warn(self, text: str) -> None:
        """Have a warning told."""
        self._say(partial(self._screen.warn, text))

    def close(self) -> None:
        """Wait until everything is drawn: when it is over there is nothing else left to do.

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
            except Exception as problem:  # raised in the thread that asked for it
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

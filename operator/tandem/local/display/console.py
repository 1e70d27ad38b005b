"""Console sinks: a merge leaves an epoch's rows in a file, whoever shows the run prints it."""

from collections.abc import Iterator
from pathlib import Path

_DIGITS = 12


class ConsoleTail:
    """Prints each epoch of one console sink once, in order, and removes its file.

    Where several merge slots share an epoch, each leaves a file of it, and its own in order. After
    a crash between printing and removing, an epoch is printed again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._printed: dict[str, int] = {}
        """The last epoch of each slot; "" stands for the one that has an epoch to itself."""

    def new_rows(self) -> Iterator[str]:
        """The rows that are there and have not been printed, as lines of JSON."""
        for epoch, slot, path in sorted(self._files()):
            if epoch > self._printed.get(slot, 0):
                # Not `splitlines`: a row may hold other characters that end lines.
                yield from path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
                self._printed[slot] = epoch
            path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[int, str, Path]]:
        if self._directory.is_dir():
            for path in self._directory.glob("*.json"):
                epoch, dash, slot = path.stem.partition("-")
                if epoch.isdecimal() and len(epoch) == _DIGITS and slot.isdecimal() == bool(dash):
                    yield int(epoch), slot, path

"""Console sinks: a merge writes an epoch's rows to a file, the display of the run prints it."""

from collections.abc import Iterator
from pathlib import Path

_DIGITS = 12


class ConsoleTail:
    """Prints each epoch of one console sink once, in order, and removes its file.

    Where several merge slots share an epoch, each writes a file of its own, in order within its
    slot. After a crash between printing and removing, an epoch is printed again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._printed: dict[str, int] = {}
        """The last epoch printed of each slot; "" stands for a slot that does not share epochs."""

    def new_rows(self) -> Iterator[str]:
        """Rows that have not been printed yet, as lines of JSON."""
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

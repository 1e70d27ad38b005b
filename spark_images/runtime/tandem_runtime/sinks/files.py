"""Delivers to a directory: one file for each epoch that has rows, named by the epoch.

Where several merge slots share an epoch, there is one file for each slot that has rows, named by
the epoch and the slot. A reader of whole epochs waits for the smallest position of all slots.

To deliver an epoch its rows are written to a draft beside the results, then the position moves and
names the draft: from here on the epoch is delivered. Then the draft is renamed to its final name.
If the process dies or freezes before that, the next reader of the position does it. So:

- a merge that freezes before the position moves finds it moved, and deletes its draft;
- one that freezes after it finds the draft gone, and changes nothing;
- only the draft that the position names ever becomes visible, once, so a file that was removed
  meanwhile does not come back, and two answers to one epoch never mix;
- epochs become visible in order, complete, and are never written again.

There is no lock, so no merge waits for a frozen one. A slot that has ended is sealed: it has no
position any more that a merge could move, whenever it wakes.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tandem_core.model.spec import ResultFormat
from tandem_core.model.states import SinkClass
from tandem_runtime.sinks.base import Answer, SinkFailed, SlotPosition
from tandem_runtime.sinks.json_text import json_lines
from tandem_runtime.sinks.slot_positions import (
    Position,
    establish,
    move_position,
    open_slot,
    other_slots,
    read_position,
    sync,
)

_DRAFT = re.compile(r"draft-([0-9]{12})-([0-9a-f]{32}(?:-[0-9]+)?)")

_WRITABLE = (
    "check that merges can write there and that there is space (in pods: mounted by "
    "spec.merges.template)"
)
_UNREAD = "resume `tandem run` or its terminal"

_HEX = 32
"""Length of a draft's own name; what follows it also follows the epoch in the result's name."""


class DirectorySink:
    """Results of a slot as files. Each row also has `_epoch` and `_pair`, and is sorted by it."""

    def __init__(
        self,
        directory: Path,
        uid: str,
        result_format: ResultFormat,
        most: int | None = None,
        *,
        slot: int = 0,
        first: int = 1,
    ) -> None:
        """Take the directory into use and clear away drafts that cannot be delivered any more.

        A new slot begins with epoch `first`. With `most`, another process removes files, and
        nothing is delivered while there are that many.

        Raises:
            ForeignSink: it belongs to another pipeline.
            SinkFailed: it cannot be made or read.
        """
        self._directory = directory
        self._format = result_format
        self._most = most
        self._slot = slot
        self._rows_out = 0
        self._rows_sealed = 0
        self._sealed = False
        try:
            self._beside = establish(directory, uid)
            self._place = open_slot(self._beside, slot, Position(first - 1, 0))
            self._clear(read_position(self._place))
        except OSError as error:
            raise self._failed(error) from error

    @property
    def delivery(self) -> SinkClass:
        """Rows and position move in one step."""
        return SinkClass.TRANSACTIONAL

    @property
    def rows_out(self) -> int:
        """Rows ever delivered by this slot; with slot 0 also those of slots that have ended."""
        return self._rows_out + self._rows_sealed

    @property
    def sealed(self) -> bool:
        """Whether the slot has ended here, as of the last read of the position."""
        return self._sealed

    def position(self) -> int:
        """Return the last epoch delivered, once its file is visible."""
        try:
            if self._slot == 0:
                others = [read_position(place) for place in other_slots(self._beside)]
                self._rows_sealed = sum(other.rows for other in others if other.sealed)
            return self._settled().epoch
        except OSError as error:
            raise self._failed(error) from error

    def deliver(self, epoch: int, answers: Sequence[Answer], *, shared: bool = False) -> int:
        """Deliver an epoch if it is the next one; see `Sink.deliver`."""
        try:
            position = self._settled()
            if position.epoch == epoch - 1 and not position.sealed:
                self._deliver(position, answers, f"-{self._slot}" if shared else "")
            return self._settled().epoch
        except OSError as error:
            raise self._failed(error) from error

    def seal(self, slot: int, first: int, last: int) -> SlotPosition:
        """Seal the position of a slot that has ended; see `Sink.seal`."""
        try:
            place = open_slot(self._beside, slot, Position(first - 1, 0, sealed=first > last))
            position = self._settled_at(place)
            if position.epoch == last and not position.sealed:
                move_position(place, position, position._replace(sealed=True))
                position = self._settled_at(place)
            if position.sealed:
                self._clear(position, place)
            return SlotPosition(position=position.epoch, sealed=position.sealed)
        except OSError as error:
            raise self._failed(error) from error

    def _deliver(self, position: Position, answers: Sequence[Answer], ending: str) -> None:
        epoch = position.epoch + 1
        filled = [(pair, table) for pair, table in sorted(answers, key=_pair) if table.num_rows]
        rows = position.rows + sum(table.num_rows for _, table in filled)
        if not filled:
            move_position(self._place, position, Position(epoch, rows))
            return
        self._check_room()
        draft = f"{uuid4().hex}{ending}"
        path = _draft(self._place, epoch, draft)
        try:
            _write(path, epoch, filled, self._format)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        # If this fails the position may have moved nevertheless: then the draft is needed.
        move_position(self._place, position, Position(epoch, rows, draft))
        now = read_position(self._place)
        if (now.epoch >= epoch or now.sealed) and now.draft != draft:
            path.unlink(missing_ok=True)

    def _check_room(self) -> None:
        if self._most is None:
            return
        waiting = sum(1 for _ in self._directory.glob(f"*.{self._format}"))
        if waiting >= self._most:
            raise SinkFailed(f"{waiting} files in {self._directory} wait to be printed", _UNREAD)

    def rows_of_all_slots(self) -> int:
        """Return the number of rows that all slots together have delivered.

        Raises:
            SinkFailed: they cannot be read.
        """
        try:
            places = [self._beside, *other_slots(self._beside)]
            return sum(read_position(place).rows for place in places)
        except OSError as error:
            raise self._failed(error) from error

    def furthest(self) -> int:
        """Return the last epoch that the directory has of any slot.

        Raises:
            SinkFailed: it cannot be read.
        """
        try:
            places = [self._beside, *other_slots(self._beside)]
            return max(read_position(place).epoch for place in places)
        except OSError as error:
            raise self._failed(error) from error

    def _settled(self) -> Position:
        """Return this slot's position, once the file that belongs to it is visible."""
        position = self._settled_at(self._place)
        self._rows_out = position.rows
        self._sealed = position.sealed
        return position

    def _settled_at(self, place: Path) -> Position:
        """Return a slot's position, once the file that belongs to it is visible."""
        position = read_position(place)
        if position.draft is not None:
            name = f"{position.epoch:012}{position.draft[_HEX:]}"
            self._publish(name, _draft(place, position.epoch, position.draft))
        return position

    def _publish(self, name: str, draft: Path) -> None:
        visible = self._directory / f"{name}.{self._format}"
        # Another merge may rename the draft at any moment, so this looks for the draft last.
        if visible.exists():
            if draft.exists():
                raise SinkFailed(
                    f"{visible} exists and was not written by this pipeline: move it elsewhere"
                )
            return
        with suppress(FileNotFoundError):
            draft.rename(visible)
            sync(self._directory)

    def _clear(self, position: Position, place: Path | None = None) -> None:
        """Remove drafts of epochs that were delivered; later ones may still be needed."""
        for path in (place or self._place).iterdir():
            draft = _DRAFT.fullmatch(path.name)
            over = draft and (int(draft[1]) <= position.epoch or position.sealed)
            if draft and over and draft[2] != position.draft:
                path.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> SinkFailed:
        # Omits the draft's name: it differs at every attempt and would look like a new failure.
        return SinkFailed(f"{self._directory} cannot be used: {error.strerror or error}", _WRITABLE)


def _draft(place: Path, epoch: int, draft: str) -> Path:
    return place / f"draft-{epoch:012}-{draft}"


def _pair(answer: Answer) -> str:
    return answer[0]


def _write(path: Path, epoch: int, answers: Sequence[Answer], result_format: ResultFormat) -> None:
    with path.open("xb") as file:
        if result_format is ResultFormat.JSON:
            _write_json(file, epoch, answers)
        else:
            _write_parquet(file, epoch, answers)
        file.flush()
        os.fsync(file.fileno())


def _write_json(file: BinaryIO, epoch: int, answers: Sequence[Answer]) -> None:
    for pair, table in answers:
        file.writelines(json_lines(table, {"_epoch": epoch, "_pair": pair}))


def _write_parquet(file: BinaryIO, epoch: int, answers: Sequence[Answer]) -> None:
    tables = [
        table.append_column("_epoch", _repeated(pa.scalar(epoch, pa.int64()), table)).append_column(
            "_pair", _repeated(pa.scalar(pair), table)
        )
        for pair, table in answers
    ]
    pq.write_table(pa.concat_tables(tables, promote_options="permissive"), file)


def _repeated(value: Any, table: Any) -> Any:
    return pa.repeat(value, table.num_rows)

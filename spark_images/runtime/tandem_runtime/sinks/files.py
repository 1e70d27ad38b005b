"""A directory with one file for each epoch that has rows, named by the epoch.

To deliver an epoch its rows are written to a draft beside the results, then the position moves,
which names the draft: from here on it is delivered. Then the draft is renamed to its final name. If
the process dies or sleeps before that, whoever asks for the position next does it. So:

- a merge that sleeps before the position moves finds it moved, and throws its draft away;
- one that sleeps after it finds the draft gone, and changes nothing;
- only the draft that the position names ever becomes visible, once, so also a file that somebody
  has taken away meanwhile does not come back, and two answers to one epoch never mix;
- epochs become visible in their order, whole, and are never written again.

No lock is held, so nobody waits for a merge that sleeps.
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

from tandem.model.spec import ResultFormat
from tandem.model.states import SinkClass
from tandem_runtime.sinks.json_text import json_lines
from tandem_runtime.sinks.position import (
    Position,
    establish,
    move_position,
    read_position,
    sync,
)
from tandem_runtime.sinks.sink import Answer, SinkFailed

_DRAFT = re.compile(r"draft-([0-9]{12})-([0-9a-f]{32})")


class FilesSink:
    """Results as files. Each row also has its `_epoch` and `_pair`; rows are sorted by pair."""

    def __init__(
        self, directory: Path, uid: str, result_format: ResultFormat, most: int | None = None
    ) -> None:
        """Take the directory into use and clear away drafts that cannot be delivered any more.

        With `most`, somebody takes files away, and while so many lie there nothing is delivered.

        Raises:
            ForeignSink: it belongs to another pipeline.
            SinkFailed: it cannot be made or read.
        """
        self._directory = directory
        self._format = result_format
        self._most = most
        self._rows_out = 0
        try:
            self._beside = establish(directory, uid)
            self._clear(read_position(self._beside))
        except OSError as error:
            raise self._failed(error) from error

    @property
    def delivery(self) -> SinkClass:
        """Rows and position move in one step."""
        return SinkClass.TRANSACTIONAL

    @property
    def rows_out(self) -> int:
        """Rows ever delivered, as of the last look at the position."""
        return self._rows_out

    def position(self) -> int:
        """The last epoch delivered. Its file is visible when this answers."""
        try:
            return self._settled().epoch
        except OSError as error:
            raise self._failed(error) from error

    def deliver(self, epoch: int, answers: Sequence[Answer]) -> int:
        """Deliver an epoch if it is the next one; see `Sink.deliver`."""
        try:
            position = self._settled()
            if position.epoch == epoch - 1:
                self._deliver(position, answers)
            return self._settled().epoch
        except OSError as error:
            raise self._failed(error) from error

    def _deliver(self, position: Position, answers: Sequence[Answer]) -> None:
        epoch = position.epoch + 1
        filled = [(pair, table) for pair, table in sorted(answers, key=_pair) if table.num_rows]
        rows = position.rows + sum(table.num_rows for _, table in filled)
        if not filled:
            move_position(self._beside, position, Position(epoch, rows))
            return
        self._check_room()
        draft = uuid4().hex
        path = self._draft(epoch, draft)
        try:
            _write(path, epoch, filled, self._format)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        # If this fails the position may have moved nevertheless: then the draft is needed.
        move_position(self._beside, position, Position(epoch, rows, draft))
        now = read_position(self._beside)
        if now.epoch >= epoch and now.draft != draft:
            path.unlink(missing_ok=True)

    def _check_room(self) -> None:
        if self._most is None:
            return
        waiting = sum(1 for _ in self._directory.glob(f"*.{self._format}"))
        if waiting >= self._most:
            raise SinkFailed(f"{waiting} files in {self._directory} wait to be taken away")

    def _settled(self) -> Position:
        """The position, once the file that belongs to it is visible."""
        position = read_position(self._beside)
        if position.draft is not None:
            self._publish(position.epoch, self._draft(position.epoch, position.draft))
        self._rows_out = position.rows
        return position

    def _publish(self, epoch: int, draft: Path) -> None:
        visible = self._directory / f"{epoch:012}.{self._format}"
        # Another merge may do the same at any moment, so the draft is looked for last.
        if visible.exists():
            if draft.exists():
                raise SinkFailed(f"{visible} is in the way and not from here: move it elsewhere")
            return
        with suppress(FileNotFoundError):
            draft.rename(visible)
            sync(self._directory)

    def _clear(self, position: Position) -> None:
        """Remove drafts of epochs that others have delivered; later ones may still be wanted."""
        for path in self._beside.iterdir():
            draft = _DRAFT.fullmatch(path.name)
            if draft and int(draft[1]) <= position.epoch and draft[2] != position.draft:
                path.unlink(missing_ok=True)

    def _draft(self, epoch: int, draft: str) -> Path:
        return self._beside / f"draft-{epoch:012}-{draft}"

    def _failed(self, error: OSError) -> SinkFailed:
        # Names of drafts are different at every trial, which would be another failure each time.
        return SinkFailed(f"{self._directory} cannot be used: {error.strerror or error}")


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

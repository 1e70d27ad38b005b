"""Results as files: what is in them, that each epoch comes once, and what happens on errors."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sinks.builders import UID, beside, opened, results, table

from tandem_core.model.spec import (
    ConsoleSink,
    FilesSink,
    HttpSink,
    KafkaSink,
    ResultFormat,
    SinkSpec,
)
from tandem_core.model.states import SinkClass
from tandem_runtime.sinks import factory, files
from tandem_runtime.sinks.base import ForeignSink, SinkFailed, SinkUnsupported
from tandem_runtime.sinks.factory import open_sink
from tandem_runtime.sinks.slot_positions import move_position


def test_epoch_is_one_file_sorted_by_pair(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    assert sink.position() == 0
    assert sink.deliver(1, [("pair-1", table(3, 1)), ("pair-0", table(2))]) == 1
    assert results(tmp_path) == {
        "000000000001.json": [
            {"n": 2, "_epoch": 1, "_pair": "pair-0"},
            {"n": 3, "_epoch": 1, "_pair": "pair-1"},
            {"n": 1, "_epoch": 1, "_pair": "pair-1"},
        ]
    }
    assert (sink.position(), sink.rows_out) == (1, 3)


def test_parquet_has_same_columns_and_types(tmp_path: Path) -> None:
    sink = opened(tmp_path, "parquet")
    sink.deliver(1, [("pair-1", table(3)), ("pair-0", table()), ("pair-2", table(2))])
    found = pq.read_table(tmp_path / "000000000001.parquet")
    assert found.schema == pa.schema(
        [("n", pa.int64()), ("_epoch", pa.int64()), ("_pair", pa.string())]
    )
    assert found.to_pydict() == {"n": [3, 2], "_epoch": [1, 1], "_pair": ["pair-1", "pair-2"]}


def test_epoch_without_rows_moves_position_without_file(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    assert sink.deliver(1, [("pair-0", table())]) == 1
    assert sink.deliver(2, []) == 2
    assert sink.deliver(3, [("pair-0", table(7))]) == 3
    assert list(results(tmp_path)) == ["000000000003.json"]
    assert (opened(tmp_path).position(), sink.rows_out) == (3, 1)


def test_only_next_epoch_is_delivered(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.deliver(1, [("pair-0", table(1))])
    before = results(tmp_path)
    for epoch in (0, 1, 3):
        assert sink.deliver(epoch, [("pair-0", table(9))]) == 1
    assert results(tmp_path) == before
    assert sink.rows_out == 1


def test_position_and_row_count_survive_restart(tmp_path: Path) -> None:
    opened(tmp_path).deliver(1, [("pair-0", table(1, 2))])
    again = opened(tmp_path)
    assert (again.position(), again.rows_out) == (1, 2)
    assert again.deliver(2, [("pair-0", table(3))]) == 2
    assert again.rows_out == 3


def test_only_current_position_file_remains(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(1, 20):
        sink.deliver(epoch, [("pair-0", table(epoch))])
    (position,) = beside(tmp_path)
    assert position.startswith("position-000000000019-19-")


def test_file_sink_is_transactional(tmp_path: Path) -> None:
    assert opened(tmp_path).delivery is SinkClass.TRANSACTIONAL


# --- whose it is --------------------------------------------------------------------------------


def test_directory_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    opened(tmp_path, uid="other").deliver(1, [("pair-0", table(1))])
    with pytest.raises(ForeignSink, match="other"):
        opened(tmp_path)


def test_results_of_unknown_origin_are_refused(tmp_path: Path) -> None:
    (tmp_path / "000000000001.json").write_text("{}\n")
    with pytest.raises(ForeignSink, match=str(tmp_path)):
        opened(tmp_path)


def test_unrelated_files_in_directory_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("results")
    assert opened(tmp_path).deliver(1, [("pair-0", table(1))]) == 1


def test_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    foreign = tmp_path / "000000000001.json"
    foreign.write_text("mine")
    with pytest.raises(SinkFailed, match=r"000000000001\.json"):
        sink.deliver(1, [("pair-0", table(1))])
    assert foreign.read_text() == "mine"
    foreign.rename(tmp_path / ".elsewhere")
    assert sink.position() == 1
    assert results(tmp_path)["000000000001.json"][0]["n"] == 1


# --- two merges ---------------------------------------------------------------------------------


class Stopped(BaseException):
    """The process ends here: no handler of errors runs after it."""


def stop_at(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def stop(*_: object) -> None:
        raise Stopped

    monkeypatch.setattr(files, where, stop)


def test_crash_before_position_moves_delivers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        stop_at(patch, "move_position")
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        sink.deliver(1, [("pair-0", table(1))])
    assert results(tmp_path) == {}
    other = opened(tmp_path)
    assert len(beside(tmp_path)) == 2
    assert other.deliver(1, [("pair-0", table(2))]) == 1
    assert results(tmp_path)["000000000001.json"][0]["n"] == 2
    opened(tmp_path)
    assert len(beside(tmp_path)) == 1


def test_next_merge_publishes_file_left_by_crash_after_position_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, other = opened(tmp_path), opened(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(files.DirectorySink, "_publish", lambda *_: (_ for _ in ()).throw(Stopped()))
        sink.deliver(1, [("pair-0", table(1))])
    assert results(tmp_path) == {}
    assert other.deliver(1, [("pair-0", table(2))]) == 1
    assert results(tmp_path)["000000000001.json"][0]["n"] == 1
    assert other.deliver(2, []) == 2
    assert other.rows_out == 1


def test_epoch_is_published_before_next_one_is_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, other = opened(tmp_path), opened(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(files.DirectorySink, "_publish", lambda *_: (_ for _ in ()).throw(Stopped()))
        sink.deliver(1, [("pair-0", table(1))])
    assert other.deliver(2, [("pair-0", table(2))]) == 2
    assert [rows[0]["n"] for rows in results(tmp_path).values()] == [1, 2]


def test_merge_paused_during_delivery_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sleeps with its draft written; meanwhile others deliver, and files are taken away."""
    sleeper, other = opened(tmp_path), opened(tmp_path)
    move = move_position

    def meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(files, "move_position", move)
        assert other.deliver(1, []) == 1
        assert other.deliver(2, [("pair-0", table(2))]) == 2
        (tmp_path / "000000000002.json").unlink()
        move(*arguments)

    monkeypatch.setattr(files, "move_position", meanwhile)
    assert sleeper.deliver(1, [("pair-0", table(1))]) == 2
    assert results(tmp_path) == {}
    assert (sleeper.rows_out, len(beside(tmp_path))) == (1, 1)


# --- errors -------------------------------------------------------------------------------------


def test_directory_creation_failure_names_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkFailed, match="file/out"):
        opened(tmp_path / "file" / "out")


def test_lost_position_raises(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    (tmp_path / "_tandem" / beside(tmp_path)[0]).unlink()
    with pytest.raises(SinkFailed, match="position") as failure:
        sink.position()
    assert failure.value.hint == ""
    shutil.rmtree(tmp_path / "_tandem")
    with pytest.raises(SinkFailed, match=str(tmp_path)):
        sink.position()


@pytest.mark.parametrize("result_format", ["json", "parquet"])
def test_full_disk_leaves_no_partial_file_and_delivery_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result_format: str
) -> None:
    sink = opened(tmp_path, result_format)
    sink.deliver(1, [("pair-0", table(1))])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SinkFailed, match="No space") as failure:
            sink.deliver(2, [("pair-0", table(2))])
    assert "spec.merges.template" in failure.value.hint
    assert (sink.position(), len(beside(tmp_path))) == (1, 1)
    assert [path.name for path in tmp_path.glob("0*")] == [f"000000000001.{result_format}"]
    assert sink.deliver(2, [("pair-0", table(2))]) == 2


def test_position_tells_outcome_of_unanswered_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path)
    move = move_position

    def done_but_not_answered(*arguments: Any) -> None:
        move(*arguments)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch, pytest.raises(SinkFailed):
        patch.setattr(files, "move_position", done_but_not_answered)
        sink.deliver(1, [("pair-0", table(1))])
    assert sink.position() == 1
    assert results(tmp_path)["000000000001.json"][0]["n"] == 1


def test_unconsumed_results_are_bounded(tmp_path: Path) -> None:  # [12]
    sink = files.DirectorySink(tmp_path, UID, ResultFormat.JSON, most=2)
    for epoch in (1, 2):
        assert sink.deliver(epoch, [("pair-0", table(epoch))]) == epoch
    for _ in range(2):
        with pytest.raises(SinkFailed) as failure:
            sink.deliver(3, [("pair-0", table(3))])
        assert "tandem run" in failure.value.hint
    assert (sink.position(), len(beside(tmp_path))) == (2, 1)
    (tmp_path / "000000000001.json").unlink()
    assert sink.deliver(3, [("pair-0", table(3))]) == 3
    assert list(results(tmp_path)) == ["000000000002.json", "000000000003.json"]
    # Without rows there is nothing to be taken away.
    assert sink.deliver(4, [("pair-0", table())]) == 4


# --- opening ------------------------------------------------------------------------------------


def test_console_sink_is_directory_of_json(tmp_path: Path) -> None:
    sink = open_sink(SinkSpec(name="screen", target=ConsoleSink()), UID, tmp_path)
    sink.deliver(1, [("pair-0", table(1))])
    assert list(results(tmp_path / "console" / "screen")) == ["000000000001.json"]


def test_unshown_console_output_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # [12]
    monkeypatch.setattr(factory, "MOST_UNSHOWN", 1)
    sink = open_sink(SinkSpec(name="screen", target=ConsoleSink()), UID, tmp_path)
    sink.deliver(1, [("pair-0", table(1))])
    with pytest.raises(SinkFailed):
        sink.deliver(2, [("pair-0", table(2))])


def test_file_sink_is_opened_by_its_path(tmp_path: Path) -> None:
    target = FilesSink(path=str(tmp_path / "out"), format=ResultFormat.PARQUET)
    open_sink(SinkSpec(name="totals", target=target), UID, tmp_path).deliver(
        1, [("pair-0", table(1))]
    )
    assert (tmp_path / "out" / "000000000001.parquet").exists()


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (HttpSink(url="http://host"), "http"),
        (KafkaSink(bootstrap_servers="host:1", topic="topic"), "kafka"),
    ],
)
def test_unsupported_sinks_raise_with_name_and_kind(
    tmp_path: Path, target: HttpSink | KafkaSink, kind: str
) -> None:
    with pytest.raises(SinkUnsupported, match=f"totals .* {kind}"):
        open_sink(SinkSpec(name="totals", target=target), UID, tmp_path)

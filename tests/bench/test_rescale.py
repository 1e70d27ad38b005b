"""What the measurement of changes works out by itself."""

import math
from pathlib import Path

import numpy as np
import pytest
from bench.rescale.__main__ import SIZES, setting_of
from bench.rescale.changes import Case, Moment, Recorder, Setting, measured
from bench.rescale.picture import draw
from bench.rescale.plain_side import name_of
from bench.rescale.repartition import last_committed
from bench.rescale.state_bytes import sent_in, state_bytes
from bench.rescale.tandem_side import HOT, MORE, unchanged
from bench.rescale.told import data, describe
from bench.streaming.deliveries import Delivery, Outlet
from bench.streaming.feeder import Feeder
from bench.streaming.oracle import Verdict
from bench.streaming.plain_run import Launch
from bench.streaming.rows import HOT_USER, Rows

SETTING = Setting(keys=10, interval_ms=500, memory_mib=1024, tries=1, rate=10)
RIGHT = Verdict(fed=10, delivered=5, epochs=4, missing=0, surplus=0, skipped=0)


def flowing(tmp_path: Path, *times: float) -> tuple[Outlet, Feeder]:
    """Deliveries of five rows each; the first row of the first is due at 1000."""
    feeder = Feeder(tmp_path / "in", Rows(10), rate=10, period=0.5)
    feeder._started, feeder._paced_from = 1000.0, 10
    outlet = Outlet(tmp_path / "out")
    outlet.seen = [Delivery(n, at, 14 + 5 * n) for n, at in enumerate(times)]
    return outlet, feeder


def case(name: str, tmp_path: Path, *times: float, load: float = 0.2) -> Case:
    outlet, feeder = flowing(tmp_path, *times)
    moment = Moment(1002.0, 1004.0, 1003.0, 1003.5, 2_000_000, 1_000_000)
    return Case(name, SETTING, measured([moment], outlet, feeder), load, RIGHT)


STEADY = tuple(1000.75 + 0.5 * n for n in range(8))
PAUSED = (*STEADY[:4], *(at + 1.25 for at in STEADY[4:]))


def test_change_without_effect_delays_nothing(tmp_path: Path) -> None:
    (change,) = case(MORE, tmp_path, *STEADY).changes
    assert change.gap == pytest.approx(0.5)
    assert change.delays == pytest.approx((0.0,) * 5)
    assert (change.to_cut, change.to_retirement, change.took) == (1.0, 1.5, 2.0)


def test_pause_is_gap_and_delay_of_later_epochs(tmp_path: Path) -> None:
    paused = case(MORE, tmp_path, *PAUSED)
    assert paused.gaps == pytest.approx([1.75])
    assert max(paused.delays) == pytest.approx(1.25)
    assert paused.late_epochs == sum(delay > 0.5 for delay in paused.delays) > 0


def test_report_compares_with_unchanged_run_and_plain_spark(tmp_path: Path) -> None:
    stock, tuned = (f"{name_of(each)}, one to two" for each in Launch)
    names = (MORE, unchanged(1), HOT, stock, tuned)
    cases = [case(name, tmp_path / str(n), *STEADY) for n, name in enumerate(names)]
    told = describe(cases)
    assert told.count("target at most 1.0 s: reached") == 2
    assert f"1.0 times shorter than {stock}, target 20: NOT REACHED" in told
    assert f"1.0 times shorter than {tuned}\n" in told
    assert f"worst 500 ms; {unchanged(1)}: 500 ms" in told
    assert told.count("at p99, target one interval: reached") == 2
    assert [each["median_gap"] for each in data(cases)] == pytest.approx([0.5] * 5)
    draw(cases, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0


@pytest.mark.parametrize(("load", "found"), [(0.3, "reached"), (0.4, "NOT REACHED")])
def test_load_is_judged(tmp_path: Path, load: float, found: str) -> None:
    told = describe([case(MORE, tmp_path, *STEADY, load=load)])
    assert f"load of {load:.0%}, target at most 30%: {found}\n" in f"{told}\n"


def test_recorder_keeps_when_nothing_was_changed(tmp_path: Path) -> None:
    outlet, _ = flowing(tmp_path, *STEADY)
    recorder = Recorder(outlet, interval=0.0, quiet=0.0)
    recorder.wait("calm", 0.01)
    (moment,) = recorder.moments["calm"]
    assert moment.ended - moment.asked >= 0.01
    assert moment.cut is None


def test_hot_user_has_its_share_of_mixed_rows() -> None:
    users = Rows(1_000, hot=0.5).users(1_000, 21_000)
    assert np.mean(users == 0) == pytest.approx(0.5, abs=0.02)
    assert Rows(1_000, hot=0.5).table(0, 1)["user"][0].as_py() == HOT_USER
    assert sorted(Rows(1_000, hot=0.5).users(0, 1_000)) == list(range(1_000))


@pytest.mark.parametrize("keys", [1_000, 100_000, 100_001, 1_000_000, 2_000_000])
def test_sizes_between_have_the_settings_of_the_next_larger(keys: int) -> None:
    setting = setting_of(keys, 5, 1_000)
    size = 100_000 if keys <= 100_000 else 1_000_000
    assert (setting.interval_ms, setting.memory_mib) == SIZES[size]


def test_state_is_what_restores_its_newest_version(tmp_path: Path) -> None:
    store = tmp_path / "state" / "0" / "0"
    store.mkdir(parents=True)
    metadata = tmp_path / "state" / "0" / "_metadata" / "metadata"
    metadata.parent.mkdir()
    metadata.write_text('v1\n{"stateStoreInfo":[{"storeName":"default","numPartitions":1}]}')
    for name, size in {"1.delta": 1, "2.snapshot": 20, "2.delta": 3, "3.delta": 400}.items():
        (store / name).write_bytes(b"x" * size)
    assert state_bytes(tmp_path) == 420


def test_batch_that_was_cut_off_by_the_stop_is_left_out(tmp_path: Path) -> None:
    for log, batches in {"offsets": (9, 10, 11), "commits": (9, 10)}.items():
        (tmp_path / log).mkdir()
        for batch in batches:
            (tmp_path / log / str(batch)).touch()
    assert last_committed(tmp_path) == 10


def test_sent_bytes_are_read_from_logs_of_any_content() -> None:
    log = (
        "Traceback (most recent call last):\n"
        "2026-11-19 02:24:08,810 split-1 INFO x: LeadChanged split-1 term 1\n"
        "2026-11-19 02:24:24,663 pair-0-a INFO tandem_runtime.services.state.copies: "
        "sent 1234 bytes of state at epoch 7 to pair-0-b-a1028be1\n"
    )
    ((at, size),) = sent_in(log)
    assert size == 1234
    assert math.fmod(at, 1) == pytest.approx(0.663)

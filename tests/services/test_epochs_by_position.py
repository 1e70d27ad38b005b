"""What an epoch holds depends on its header's positions alone, byte for byte.

However chunks were cut, however many splits there were, and whoever owned a partition when: every
epoch that a replica had equals the one that is built again from its sources.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services.by_position import (
    CLICKS,
    PAYMENTS,
    Layout,
    drawn,
    kill_one,
    let_one_leave,
    rebuilt,
    rows_of,
    run,
)
from tests.services.intake import Intake, NoSpark

from tandem_runtime.services import driver
from tandem_runtime.volume import chunks

SMALL = 64 * 1024
LAYOUTS = {
    "one split": Layout(1, {"interval": "400ms"}),
    "two splits, short epochs": Layout(2, {"interval": "150ms", "maxBytes": "64Ki"}),
    **{f"drawn {seed}": drawn(seed) for seed in range(4)},
}
MOVES = {"one leaves": let_one_leave, "one dies": kill_one}
CHUNKS = {"small": "64Ki", "large": "64Mi"}


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "Engine", NoSpark)


def differing(ran: Intake) -> Iterator[tuple[str, int]]:
    """Epochs of a pair that are not what the sources say; there are all rows in all of them."""
    counted = {"payments": 0, "clicks": 0}
    for pair, replica in ran.replicas.items():
        for epoch, files in zip(replica.epochs, rebuilt(ran, pair), strict=True):
            for stream, right in files.items():
                counted[stream] += len(rows_of(right))
                if epoch.files[stream] != right.to_pybytes():
                    yield pair, epoch.header.epoch
    assert counted == {"payments": PAYMENTS, "clicks": CLICKS}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_epoch_equals_epoch_built_from_sources(tmp_path: Path, name: str) -> None:  # [3] [4]
    assert list(differing(run(tmp_path, LAYOUTS[name]))) == []


@pytest.mark.parametrize("name", MOVES)
def test_epochs_do_not_depend_on_partition_owner(tmp_path: Path, name: str) -> None:  # [4]
    # Slow enough that its partitions are far from their ends when a split goes, on any machine.
    slowly = Layout(3, {"interval": "200ms"}, rate=500, happens=MOVES[name], after=0.2)
    ran = run(tmp_path, slowly)
    assert list(differing(ran)) == []
    assert any(len(splits) > 1 for splits in ran.readers().values())


@pytest.mark.parametrize("size", CHUNKS)
def test_epochs_do_not_depend_on_chunk_size(tmp_path: Path, size: str) -> None:  # [4]
    ran = run(tmp_path, Layout(1, {"interval": "2s", "maxBytes": CHUNKS[size]}, rate=5000))
    assert list(differing(ran)) == []
    assert (ran.largest_share() < SMALL) == (size == "small")


def test_rows_ordered_by_chunk_are_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "by_position", lambda segments, _: list(segments))
    assert list(differing(run(tmp_path, Layout(1, {"interval": "800ms"}))))

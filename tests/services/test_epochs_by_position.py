"""What an epoch holds depends on its header's positions alone, byte for byte.

However chunks were cut, however many splits there were, and whoever owned a partition when: every
epoch that a replica had equals the one that is built again from its sources.
"""

from pathlib import Path

import pytest
from tests.services.by_position import (
    CLICKS,
    PAYMENTS,
    Layout,
    kill_one,
    let_one_leave,
    rebuilt,
    rows_of,
    run,
)
from tests.services.intake import NoSpark

from tandem_runtime.services import driver

LAYOUTS = {
    "one split": Layout(1, {"interval": "400ms"}),
    "two splits, small chunks": Layout(2, {"interval": "150ms", "maxBytes": "64Ki"}),
    "three splits, one leaves": Layout(3, {"interval": "200ms"}, happens=let_one_leave),
    "three splits, one dies": Layout(3, {"interval": "250ms"}, happens=kill_one),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_epoch_equals_the_one_built_from_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:  # [3] [4]
    monkeypatch.setattr(driver, "Engine", NoSpark)
    ran = run(tmp_path, LAYOUTS[name])
    counted = {"payments": 0, "clicks": 0}
    for pair, replica in ran.replicas.items():
        for epoch, files in zip(replica.epochs, rebuilt(ran, pair), strict=True):
            for stream, right in files.items():
                assert epoch.files[stream] == right.to_pybytes(), (pair, epoch.header.epoch)
                counted[stream] += len(rows_of(right))
    assert counted == {"payments": PAYMENTS, "clicks": CLICKS}
    assert ran.owners() == LAYOUTS[name].splits

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem_runtime.services.spare_assignment import Assignment
from tandem_runtime.volume.pod_volumes import succeed
from tandem_runtime.volume.volume import Volume


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    claimed = Volume(tmp_path / "spare.0")
    claimed.claim()
    yield claimed
    claimed.release()


def test_spare_has_no_pair_until_assigned(volume: Volume) -> None:
    assignment = Assignment(volume)
    assert not assignment.given.is_set()
    assert assignment.assign(b"pair-1") == b""
    assert assignment.given.is_set()
    assert assignment.pair == "pair-1"


def test_assignment_survives_restart_and_next_volume(volume: Volume) -> None:
    Assignment(volume).assign(b"pair-1")
    assert Assignment(volume).pair == "pair-1"
    after = Assignment(Volume(succeed(volume.directory)))
    assert after.given.is_set()
    assert after.pair == "pair-1"


def test_repeated_assignment_is_accepted_and_different_one_refused(volume: Volume) -> None:
    assignment = Assignment(volume)
    for _ in range(2):
        assignment.assign(b"pair-1")
    with pytest.raises(ValueError, match="pair-1"):
        assignment.assign(b"pair-2")
    assert assignment.pair == Assignment(volume).pair == "pair-1"

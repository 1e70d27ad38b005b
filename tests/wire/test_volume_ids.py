import pytest

from tandem_core.contract.volume_ids import PodVolume, pod_volume

POD = "7d1f4d3e-9b1c-4a57-8a8e-0c8d2f1f6c11"


def test_pod_volume_id_round_trips() -> None:
    volume = PodVolume(POD, 12)
    assert pod_volume(volume.id) == volume
    assert volume.id == f"{POD}.12"
    assert volume.next == PodVolume(POD, 13)


@pytest.mark.parametrize("other", ["", "split-0-k3x", "a.", ".1", "a.b", "a.-1", f".{POD}"])
def test_other_volume_ids_belong_to_no_pod(other: str) -> None:
    assert pod_volume(other) is None

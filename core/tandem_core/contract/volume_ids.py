"""Ids of the volumes of pods: `<pod uid>.<n>` is the n-th volume created in a pod.

A pod has one volume at a time. When its state is no longer usable, the next one is created, so
only the volume with the highest number exists in a pod.
"""

from __future__ import annotations

from typing import NamedTuple


class PodVolume(NamedTuple):
    """The parts of a volume's id."""

    pod: str
    number: int

    @property
    def id(self) -> str:
        """The volume's id."""
        return f"{self.pod}.{self.number}"

    @property
    def next(self) -> PodVolume:
        """The volume that follows this one."""
        return PodVolume(self.pod, self.number + 1)


def pod_volume(volume: str) -> PodVolume | None:
    """Parse a volume's id; None if it is not the id of a pod's volume."""
    pod, _, number = volume.rpartition(".")
    if not pod or not number.isdecimal():
        return None
    return PodVolume(pod, int(number))

"""Volumes of pods: `<pod uid>.<n>`, the n-th volume that was begun in a pod.

A pod has one volume at a time. When it holds nothing of use any more the next one is begun, so of
one pod only the volume with the highest number is there.
"""

from __future__ import annotations

from typing import NamedTuple


class PodVolume(NamedTuple):
    """A volume's id, taken apart."""

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
    """The parts of a volume's id; None if it is not one of a pod."""
    pod, _, number = volume.rpartition(".")
    if not pod or not number.isdecimal():
        return None
    return PodVolume(pod, int(number))

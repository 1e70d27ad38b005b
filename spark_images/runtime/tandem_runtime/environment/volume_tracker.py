"""Tracks which volume each pod is on, from reports: the highest number counts."""

from __future__ import annotations

import threading

from tandem_core.contract.volume_ids import PodVolume, pod_volume
from tandem_runtime.protocol.bounded_map import BoundedMap


class VolumeTracker:
    """The newest reported volume of each pod. Safe to use from any thread."""

    def __init__(self) -> None:
        self._numbers: BoundedMap[int] = BoundedMap()
        self._lock = threading.Lock()

    def heard(self, volume: str) -> None:
        """Record that a pod is, or was, on this volume."""
        parts = pod_volume(volume)
        if parts is None:
            return
        with self._lock:
            if parts.number > self._numbers.get(parts.pod, 0):
                self._numbers[parts.pod] = parts.number

    def of(self, pod: str) -> PodVolume:
        """The volume that a pod is on; its first one if none was reported."""
        with self._lock:
            return PodVolume(pod, self._numbers.get(pod, 0))

    def outdates(self, volume: PodVolume) -> bool:
        """Whether the pod is on a later volume by now."""
        return volume.number < self.of(volume.pod).number

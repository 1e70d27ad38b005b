"""Which volume each pod is on, as far as it was heard: the highest number counts."""

from __future__ import annotations

import threading

from tandem_core.contract.volume_ids import PodVolume, pod_volume
from tandem_runtime.protocol.bounded_map import BoundedMap


class VolumeTracker:
    """Volumes heard of, by pod. May be asked from any thread."""

    def __init__(self) -> None:
        self._numbers: BoundedMap[int] = BoundedMap()
        self._lock = threading.Lock()

    def heard(self, volume: str) -> None:
        """A pod is, or was, on this volume."""
        parts = pod_volume(volume)
        if parts is None:
            return
        with self._lock:
            if parts.number > self._numbers.get(parts.pod, 0):
                self._numbers[parts.pod] = parts.number

    def of(self, pod: str) -> PodVolume:
        """The volume that a pod is on; its first one if it was not heard of."""
        with self._lock:
            return PodVolume(pod, self._numbers.get(pod, 0))

    def outdates(self, volume: PodVolume) -> bool:
        """Whether the pod is on a later volume by now."""
        return volume.number < self.of(volume.pod).number

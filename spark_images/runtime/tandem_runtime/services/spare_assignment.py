"""Assigns a spare to a pair."""

from __future__ import annotations

import threading

from tandem_runtime.volume.volume import Volume


class Assignment:
    """The pair that a spare belongs to, once it is assigned.

    Stored on the volume, for a process that is restarted as a spare.
    """

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._lock = threading.Lock()
        self.given = threading.Event()
        self.pair = ""
        kept = volume.directory / "pair"
        if kept.exists():
            self._take(kept.read_text())

    def assign(self, body: bytes) -> bytes:
        """Store the name of the pair; called from any thread.

        Raises:
            ValueError: this is already a replica of another pair.
        """
        pair = body.decode()
        with self._lock:
            if self.given.is_set() and pair != self.pair:
                raise ValueError(f"this is a replica of {self.pair}")
            self._volume.write_beside("pair", body)
            self._take(pair)
        return b""

    def _take(self, pair: str) -> None:
        self.pair = pair
        self.given.set()

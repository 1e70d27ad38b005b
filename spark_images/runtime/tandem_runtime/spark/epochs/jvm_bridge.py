"""Calls the JVM's side of a query from Python."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


class Bridge:
    """Calls `dev.tandem.spark.Epochs` for one channel, which belongs to one query."""

    def __init__(self, session: SparkSession, channel: str) -> None:
        epochs = session.sparkContext._jvm.dev.tandem.spark.Epochs  # type: ignore[union-attr]
        self.channel = channel
        # Each access to a member is a round trip to the JVM, so they are looked up once.
        self._start = epochs.start
        self._publish = epochs.publish
        self._finish = epochs.finish
        self._next_event = epochs.nextEvent
        self._stop = epochs.stop
        epochs.open(channel)

    def start(self, result: DataFrame, output_mode: str, checkpoint: Path, inbox: Path) -> None:
        """Start the query."""
        self._start(self.channel, result._jdf, output_mode, str(checkpoint), str(inbox))

    def publish(self, epoch: int) -> None:
        """Let the query read an epoch; its files must be complete."""
        self._publish(self.channel, epoch)

    def finish(self, epoch: int) -> None:
        """Allow the batch of an epoch to commit."""
        self._finish(self.channel, epoch)

    def next_event(self) -> dict[str, Any]:
        """Wait for the next event; the last one is `ended`."""
        event: dict[str, Any] = json.loads(self._next_event(self.channel))
        return event

    def stop(self) -> None:
        """Stop the query; a batch that still waits for `finish` is not committed."""
        self._stop(self.channel)

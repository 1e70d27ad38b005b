"""Prints rows to the log of the merge's pod, where no other process shows them.

A pod log keeps no position. The sink uses the last epoch it has printed and the last one that the
header log has as delivered, so after a failover a merge continues from its predecessor's last
report. Each slot prints its pairs to the log of its own pod. There is nothing to seal.
"""

from collections.abc import Callable, Sequence
from typing import BinaryIO

from tandem_core.model.states import SinkClass
from tandem_runtime.sinks.base import Answer, SinkFailed, SlotPosition
from tandem_runtime.sinks.json_text import json_lines

_SPACE = "check that its node has disk space"


class PrintedSink:
    """Rows as JSON lines with their `_epoch` and `_pair`, sorted by pair."""

    def __init__(
        self,
        output: BinaryIO,
        recorded: Callable[[], int],
        everywhere: Callable[[], int] | None = None,
    ) -> None:
        """`recorded` is the epoch that the lead has for this slot, `everywhere` for all slots."""
        self._output = output
        self._recorded = recorded
        self._everywhere = everywhere or recorded
        self._printed = 0
        self._rows_out = 0

    @property
    def delivery(self) -> SinkClass:
        """At least once: epochs printed but not recorded when the merge died are printed again."""
        return SinkClass.AT_LEAST_ONCE

    @property
    def rows_out(self) -> int:
        """Rows printed by this process; those of earlier ones are unknown."""
        return self._rows_out

    @property
    def sealed(self) -> bool:
        """Never: another process cannot be kept from printing."""
        return False

    def position(self) -> int:
        """Return the last epoch printed or recorded as delivered."""
        return max(self._printed, self._recorded())

    def seal(self, slot: int, first: int, last: int) -> SlotPosition:
        """Report a slot as sealed once all epochs through its last one are recorded as printed."""
        del slot, first
        reached = self._everywhere()
        return SlotPosition(position=min(reached, last), sealed=reached >= last)

    def deliver(self, epoch: int, answers: Sequence[Answer], *, shared: bool = False) -> int:
        """Print an epoch if it is the next one; see `Sink.deliver`."""
        del shared
        if self.position() != epoch - 1:
            return self.position()
        lines = [
            bytes(text)
            for pair, table in sorted(answers, key=lambda answer: answer[0])
            for text in json_lines(table, {"_epoch": epoch, "_pair": pair})
        ]
        try:
            self._output.write(b"".join(lines))
            self._output.flush()
        except OSError as error:
            raise SinkFailed(f"the pod's log cannot be written: {error}", _SPACE) from error
        self._printed = epoch
        self._rows_out += sum(table.num_rows for _, table in answers)
        return self.position()

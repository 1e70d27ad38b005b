"""A toy Spark: deterministic, stateful, and sensitive to every mistake of its environment.

The query counts rows per key (output in every epoch that touches the key) and rows per key and
event-time window (output once, when the previous header's watermark has passed the window's end).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tandem_runtime.protocol.types import Header
from tandem_simulator.engine.configuration import Row

WINDOW = 1000
"""Length of an event-time window."""

Output = tuple[object, ...]
Window = tuple[int, int, int]
"""Stream index, key, start."""


class ToyState(NamedTuple):
    """What a checkpoint holds."""

    epoch: int
    counts: dict[int, int]
    windows: dict[Window, int]
    watermarks: tuple[int, ...]
    """Watermarks of the last header that was run, by stream."""


EMPTY = ToyState(0, {}, {}, ())


class StateMismatchError(Exception):
    """The state is inconsistent, or does not match the epoch to run."""


def run(
    state: ToyState, header: Header, rows: Iterable[Row], stream_of: Sequence[int]
) -> tuple[ToyState, tuple[Output, ...]]:
    """Run a micro-batch; return the new state and the output."""
    if state.epoch != header.epoch - 1:
        raise StateMismatchError(f"epoch {header.epoch} on the state of epoch {state.epoch}")
    counts = dict(state.counts)
    windows = dict(state.windows)
    marks = state.watermarks
    touched: dict[int, list[tuple[int, int]]] = {}
    for partition, sequence, key, at in rows:
        counts[key] = counts.get(key, 0) + 1
        touched.setdefault(key, []).append((partition, sequence))
        stream = stream_of[partition]
        start = at // WINDOW * WINDOW
        if not marks or start + WINDOW > marks[stream]:
            window = (stream, key, start)
            windows[window] = windows.get(window, 0) + 1
    output: list[Output] = [(0, key, counts[key], tuple(touched[key])) for key in sorted(touched)]
    if marks:
        closed = [w for w in windows if w[2] + WINDOW <= marks[w[0]]]
        output.extend((1, *window, windows.pop(window)) for window in sorted(closed))
    watermarks = tuple(mark for _, mark in sorted(header.watermarks))
    after = ToyState(header.epoch, counts, windows, watermarks)
    return after, tuple(output)


def digest(output: tuple[Output, ...]) -> int:
    """A hash that ignores order; of integers only, so it is the same in every process."""
    return sum(map(hash, output)) & 0x1FFFFFFFFFFFFFFF


def select(state: ToyState, keys: frozenset[int]) -> ToyState:
    """The part of the state that belongs to some keys."""
    return ToyState(
        state.epoch,
        {key: count for key, count in state.counts.items() if key in keys},
        {window: n for window, n in state.windows.items() if window[1] in keys},
        state.watermarks,
    )


def combine(epoch: int, parts: Sequence[ToyState]) -> ToyState:
    """Combine the parts of state from former owners of the keys."""
    if not parts:
        return EMPTY
    if {part.epoch for part in parts} != {epoch}:
        raise StateMismatchError(f"parts of {[p.epoch for p in parts]} for epoch {epoch}")
    if len({part.watermarks for part in parts}) > 1:
        raise StateMismatchError(f"parts with watermarks {[p.watermarks for p in parts]}")
    counts: dict[int, int] = {}
    windows: dict[Window, int] = {}
    for part in parts:
        counts.update(part.counts)
        windows.update(part.windows)
    return ToyState(epoch, counts, windows, parts[0].watermarks)

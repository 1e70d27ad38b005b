"""Formats a failed schedule: its world, its events, and the accounts that differ."""

from __future__ import annotations

import textwrap

from tandem_simulator.engine.configuration import Configuration
from tandem_simulator.engine.trace import DETAIL, FAULT, ROUTINE, TURN, Line, Trace
from tandem_simulator.oracle.violation import Violation

MOST_LINES = 48
"""Most lines of events in a story."""

NAMES = {
    0: "progress",
    1: "loss-free",
    2: "duplicate-free",
    3: "immutable epochs",
    4: "twins agree",
    5: "nothing needed is forgotten",
    6: "one header for an epoch",
    7: "generations and watermarks never fall",
    8: "two copies",
    9: "order within a key",
    11: "control messages may go astray",
    12: "bounded",
}


def tell(configuration: Configuration, violation: Violation, trace: Trace) -> str:
    """The story of a failed schedule."""
    lines = [*_world(configuration), ""]
    lines.extend(_line(line) for line in select(trace.lines, violation))
    name = NAMES.get(violation.invariant, "")
    lines += [
        "",
        f"BROKEN at {_at(violation.time)}: [{violation.invariant}] {name} ({violation.kind})"
        + (f", seen at {violation.where}" if violation.where else ""),
        f"  {violation.accounts}",
    ]
    return "\n".join(lines)


def _world(configuration: Configuration) -> list[str]:
    c = configuration
    sinks = ", ".join(f"{n} ({'transactional' if t else 'idempotent'})" for n, t in c.sinks)
    pairs = ", ".join(f"{name} {sorted(keys)}" for name, keys in c.pairs)
    rows = ", ".join(f"{p.name} {len(p.rows)} rows" for p in c.partitions)
    s = c.settings
    return [
        f"{c.splits} splits on {len(c.nodes)} nodes; {pairs}; {c.slots} merge(s) with standby; "
        f"{sinks}; {rows}{' (forgetful)' if c.partitions[0].forgets else ' (replaying)'}",
        f"K {s.max_uncommitted}, outbox {s.max_undelivered}, window {s.window}, lane "
        f"{s.max_lane_bytes} bytes; faults until {_at(c.faults_end)}; loss {c.noise.loss}, "
        f"repeats {c.noise.repeat}, late {c.noise.late}",
    ]


def select(lines: list[Line], violation: Violation) -> list[Line]:
    """The most relevant lines, in order: faults, turns, and events near the violation."""
    told = [line for line in lines if _relevant(line, violation)]
    struck = min((line.time for line in told if line.weight == FAULT), default=0)
    ranked = sorted(
        range(len(told)),
        key=lambda i: (_rank(told[i], violation, struck), told[i].time),
        reverse=True,
    )
    return [told[i] for i in sorted(ranked[:MOST_LINES])]


def _relevant(line: Line, violation: Violation) -> bool:
    return line.weight > ROUTINE or _named(line, violation)


def _named(line: Line, violation: Violation) -> bool:
    """Whether the line concerns what was violated."""
    if violation.epoch and line.epoch == violation.epoch:
        return True
    about = {violation.subject, violation.where} - {""}
    return any(name in line.who or name in line.text for name in about)


def _rank(line: Line, violation: Violation, struck: int) -> int:
    """The relevance of a line; lines before the first fault count little."""
    if line.weight == FAULT:
        return 6
    rank = {TURN: 3, DETAIL: 1, ROUTINE: 0}[line.weight]
    near = violation.time - line.time < 1500  # noqa: PLR2004
    early = line.time < struck
    return rank + (2 if _named(line, violation) else 0) + near - 3 * early


def _line(line: Line) -> str:
    head = f"{_at(line.time)}  {line.who:<12} "
    return textwrap.shorten(line.text, 150, placeholder=" …").join((head, ""))


def _at(time: int) -> str:
    return f"{time / 1000:6.3f} s"

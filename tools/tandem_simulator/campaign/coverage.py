"""The coverage table: how often schedules have reached each case."""

from __future__ import annotations

from collections import Counter

from tandem_simulator.faults.destruction import KINDS as DESTRUCTION
from tandem_simulator.faults.disturbance import KINDS as DISTURBANCE

CASES: dict[str, str] = {
    "take-overs": "take-overs",
    "successions": "successions",
    "hand-overs": "HandedOver",
    "header log alone for a while": "WentAlone",
    "header log rebuilt": "Rebuilt",
    "header log rebuilt again": "header log rebuilt again",
    "late member of an older history": "late member of an older history",
    "lanes closed": "LaneClosed",
    "closings cancelled": "LaneResumed",
    "lapses": "Lapsed",
    "changes planned": "change: Planned",
    "changes built": "change: Building",
    "changes synced": "change: Synced",
    "changes cut": "change: Cutting",
    "changes retiring": "change: Retiring",
    "changes done": "change: done",
    "changes abandoned": "change: Abandoned",
    "changes taken back": "change: taken back",
    "targets given up before the cut": "change: back before the cut",
    "changes done, two and more in a schedule": "change: done again",
    "steps after the first of a change": "change: next step",
    "keys moved by hand": "change: key moved",
    "operator killed": "operator killed",
    "splits asked to leave": "splits asked to leave",
    "partitions placed by the intent": "partitions placed",
    "generation cuts": "GenerationCut",
    "abandoned generations": "GenerationGivenUp",
    "pairs retired": "PairsRetired",
    "merges changed": "merges changed",
    "merge slots opened": "SlotOpened",
    "merge slots ended": "SlotEnded",
    "merge slots sealed": "SlotSealed",
    "pairs dealt anew": "PairsDealt",
    "deliveries of sealed slots": "deliveries of sealed slots",
    "deliveries fenced off": "deliveries fenced off",
    "second answers dropped": "DuplicateDropped",
    "zombie messages refused": "StaleRefused",
    "replicas displaced": "Displaced",
    "catch-ups": "catch-ups",
    "spares of another share refused": "spares of another share refused",
    "resumed from own volume": "Resumed",
    "skipped ahead": "SkippedAhead",
    "twins differing found": "TwinsDiffer",
    "DataLost said, beyond": "DataLost said, beyond",
    "splits that left": "exit: left",
}
"""Rows of the table, and the counter behind each."""

NETWORK = (
    "message lost",
    "message repeated",
    "message late, out of order",
    "message cut off",
    "message lost, buffers full",
    "register reply lost",
    "swap request lost",
    "swap landed late",
    "swap sent twice",
    "sink answer lost",
)
"""Disturbances by network, register and sinks that no script injects."""


def table(counted: Counter[str]) -> dict[str, int]:
    """Every row of the table, including those at zero."""
    rows = {row: counted[counter] for row, counter in CASES.items()}
    rows |= {f"fault: {kind}": counted[f"fault: {kind}"] for kind in (*DESTRUCTION, *DISTURBANCE)}
    rows |= {row: counted[row] for row in NETWORK}
    return rows

"""What a soak has found, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from tests.soak.campaign import Made
from tests.soak.changes import ChangeMade
from tests.soak.targets import ASIDE
from tests.soak.verdict import Verdict

COMPLETED_AT_LEAST = 0.5
"""Share of the changes that must be carried out in a good soak."""


@dataclass(frozen=True, slots=True)
class Soak:
    """One soak."""

    seed: int
    asked: int
    """Faults that were to be made."""
    made: list[Made]
    asked_changes: int
    """Changes that were to be made."""
    changed: list[ChangeMade]
    rows_in: int
    verdict: Verdict
    take_overs: int
    starts: int
    """How often `tandem run` was started."""
    epochs: int
    longest_gap: float
    """Seconds between two delivered epochs."""
    seconds: float

    @property
    def good(self) -> bool:
        """Whether every fault and change was made, and nothing was lost, doubled or disordered.

        Faults may end changes; but changes that are all given up would show nothing.
        """
        all_made = len(self.made) == self.asked and len(self.changed) == self.asked_changes
        enough = self.completed >= COMPLETED_AT_LEAST * self.asked_changes
        return self.verdict.good and all_made and enough

    @property
    def completed(self) -> int:
        """How many changes were carried out."""
        return len(self.changed) - self.given_up

    @property
    def given_up(self) -> int:
        """How many changes were given up."""
        return sum(bool(made.given_up) for made in self.changed)


def progress_line(made: Made, number: int, asked: int) -> str:
    """One fault in one line."""
    fault = made.fault
    lasting = f" for {fault.frozen:.1f} s" if fault.act == "freeze" else ""
    minutes, seconds = divmod(int(made.at), 60)
    what = f"{fault.kind}{lasting}"
    return (
        f"{number:>4}/{asked}  {minutes:>3}:{seconds:02}  {what:<32} {made.who:<12} "
        f"{made.standing:<6} delivered {made.delivered}"
    )


def change_line(made: ChangeMade) -> str:
    """One change that has ended in one line."""
    outcome = f"given up: {made.given_up}" if made.given_up else "done"
    return f"      change  {made.change.text:<24} {outcome} after {made.seconds:.0f} s"


def table(soak: Soak) -> Table:
    """The faults by kind."""
    shown = Table(title=f"{len(soak.made)} faults in {soak.seconds:.0f} s", box=None)
    shown.add_column("fault")
    shown.add_column("times", justify="right")
    for kind, times in sorted(_by_kind(soak).items()):
        shown.add_row(kind, str(times))
    return shown


def sentences(soak: Soak) -> list[str]:
    """What was counted."""
    verdict = soak.verdict
    early = "" if len(soak.made) == soak.asked else f" (of {soak.asked}: the pipeline was through)"
    return [
        f"faults made        {len(soak.made):,}{early}",
        f"  during a change  {sum(made.changing for made in soak.made):,}",
        *(f"  at {kind + ' pairs':<13} {_at(soak, kind):,}" for kind in sorted(ASIDE)),
        f"changes            {soak.completed:,} of {soak.asked_changes:,} completed, "
        f"{soak.given_up:,} given up",
        f"rows in            {soak.rows_in:,}",
        f"results            {verdict.rows:,} in {soak.epochs:,} epochs",
        f"lost               {verdict.lost:,}",
        f"doubled            {verdict.doubled:,}",
        f"not in the recount {verdict.foreign:,}",
        f"out of order       {verdict.misordered:,}",
        f"take-overs         {soak.take_overs:,}",
        f"supervisor starts  {soak.starts:,}",
        f"longest gap        {soak.longest_gap:.1f} s",
    ]


def document(soak: Soak) -> dict[str, Any]:
    """The whole soak for programs."""
    found = asdict(soak)
    found["byKind"] = _by_kind(soak)
    found["good"] = soak.good
    found["completed"] = soak.completed
    found["byStanding"] = {standing: _at(soak, standing) for standing in sorted(ASIDE)}
    return found


def _at(soak: Soak, standing: str) -> int:
    """Faults that hit members of pairs with this standing."""
    return sum(made.standing == standing for made in soak.made)


def _by_kind(soak: Soak) -> dict[str, int]:
    return dict(Counter(made.fault.kind for made in soak.made))

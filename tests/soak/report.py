"""What a soak has found, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from tests.soak.campaign import Made
from tests.soak.changes import ChangeMade
from tests.soak.verdict import Verdict


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
        """Whether every fault and change was made, and nothing was lost, doubled or disordered."""
        all_made = len(self.made) == self.asked and len(self.changed) == self.asked_changes
        return self.verdict.good and all_made

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
        f"delivered {made.delivered}"
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
        f"changes            {len(soak.changed):,}, {soak.given_up:,} of them given up",
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
    return found


def _by_kind(soak: Soak) -> dict[str, int]:
    return dict(Counter(made.fault.kind for made in soak.made))

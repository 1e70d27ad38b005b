"""One soak, from an empty directory to its verdict."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from tests.laptop.harness import Run
from tests.laptop.output import Output, longest_gap
from tests.soak.campaign import Campaign, CompletedEarly, Made
from tests.soak.changes import ChangeMade, interleaved, planned_changes
from tests.soak.pipeline import Rows, manifest
from tests.soak.plan import planned
from tests.soak.report import Soak
from tests.soak.verdict import judge

BEGIN_WITHIN = 180.0
END_WITHIN = 240.0
END_WITHIN_PER_FAULT = 3.0
"""Reading falls behind while splits are down, and rows come at their own pace."""


def soak(
    home: Path,
    faults: int,
    seed: int,
    progress: Callable[[Made], None],
    changes: int = 0,
    told: Callable[[ChangeMade], None] = lambda _: None,
) -> Soak:
    """Run the pipeline, make the faults and changes, wait for the end, compare.

    Raises:
        AssertionError: the pipeline did not begin, or did not come to its end.
    """
    rows, output = Rows(home, seed), Output(home / "out")
    # A change has more drivers at work than there are otherwise.
    interval = "1s" if changes else "500ms"
    with Run(home, manifest(interval=interval)) as run:
        with rows.flowing(run):
            run.until(run.whole, BEGIN_WITHIN, "everybody runs and every pair is paired")
            began = time.monotonic()
            campaign = Campaign(run, output, progress, told)
            acts = interleaved(planned(faults, seed), planned_changes(changes, seed))
            with contextlib.suppress(CompletedEarly):
                campaign.carry_out(acts)
        status = run.completes(END_WITHIN + END_WITHIN_PER_FAULT * (faults + changes))
        seconds = time.monotonic() - began
    deliveries = output.deliveries()
    return Soak(
        seed=seed,
        asked=faults,
        made=campaign.made,
        asked_changes=changes,
        changed=campaign.changed,
        rows_in=status["counters"]["rowsIn"],
        verdict=judge(rows.expected(), output.table()),
        take_overs=status["counters"]["takeOvers"],
        starts=campaign.starts,
        epochs=len(deliveries),
        longest_gap=longest_gap(deliveries),
        seconds=seconds,
    )

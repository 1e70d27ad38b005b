"""Runs a pipeline of payments, breaks two drivers, resizes it, and recounts the output."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console

from demo.payments import Payments
from demo.recount import recount
from demo.report import Findings, conclude, gaps_of, introduce, speaker
from demo.scenario import Story
from tandem.local.query_check import CheckFailed
from tandem.local.run import run_pipeline
from tandem.local.shutdown import End
from tandem.local.store.directory import Directory
from tandem.local.store.paths import with_absolute_paths
from tandem_cli.run import PROGRAMS, load

MANIFEST = Path(__file__).with_name("payments.yaml")
DONE, FAILED = 0, 1
INTRODUCTION = """\
Two splits read payments, two pairs of Spark drivers count them, and a merge
delivers the totals. One driver is killed with kill -9, and a driver of the other
pair is frozen. Then two pairs become three, and two again, while payments flow.
First the four drivers start, which takes a while.
"""


def main() -> int:
    """Run the demonstration; return 0 if it completed, resized, lost and duplicated nothing."""
    console = Console(highlight=False)
    manifest = load(MANIFEST)
    if isinstance(manifest, int):
        return manifest
    introduce(console, MANIFEST, INTRODUCTION)
    with tempfile.TemporaryDirectory(prefix="tandem-demo-") as place:
        home = Path(place)
        pipeline = with_absolute_paths(manifest, home, MANIFEST.parent)
        directory = Directory(home / "state")
        payments = Payments(pipeline.spec.streams[0], home / "payments")
        story = Story(directory, payments, speaker(console))
        story.begin()
        try:
            end = run_pipeline(pipeline, MANIFEST.parent, directory, PROGRAMS, console)
        except CheckFailed as problem:
            console.print(str(problem), soft_wrap=True)
            return FAILED
        if not isinstance(end, End) or not story.over:
            console.print("The demonstration was stopped before its end.")
            return FAILED
        findings = Findings(
            rows_in=payments.written,
            recount=recount(payments.rows(), home / "totals"),
            gaps=gaps_of(story.failures, story.resizes, story.warm_at, home / "totals"),
            failures=tuple(story.failures),
            resizes=tuple(story.resizes),
            take_overs=end.status.counters.take_overs,
        )
    conclude(console, findings)
    return DONE if findings.good else FAILED


if __name__ == "__main__":
    sys.exit(main())

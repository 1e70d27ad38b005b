"""`python -m demo.kind`: the demonstration on this machine's Kubernetes cluster.

It creates a cluster of one control plane and two workers, installs the chart and applies the
pipeline of payments. A driver pod is killed, a worker is stopped and started, and two pairs become
three and two again. At the end the output is recounted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from cluster.steps import StepFailed
from cluster.storage import open_directory
from cluster.trial.pipeline import TrialPipeline
from cluster.trial.space import Space
from cluster.trial.stage import Stage, stage, with_shared_directory
from cluster.trial.waiting import InVain
from rich.console import Console

from demo.kind_scenario import KindStory
from demo.kind_view import View
from demo.payments import Payments
from demo.recount import recount
from demo.report import Findings, conclude, gaps_of, introduce, speaker
from tandem_core.model.pipeline import Refusal, parse_pipeline

MANIFEST = Path(__file__).with_name("payments.yaml")
DONE, FAILED = 0, 1
INTRODUCTION = """\
Splits, two pairs of Spark drivers and merges run as pods on two workers. A
driver pod is killed, a whole worker is stopped and started again, and two pairs
become three and two again. First the cluster is created, which takes long the
first time; images are built and loaded, the operator is installed, and four
drivers start.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return 0 if it completed, resized, lost and duplicated nothing."""
    parser = argparse.ArgumentParser(prog="python -m demo.kind", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the cluster and the operator")
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False)
    introduce(console, MANIFEST, INTRODUCTION)
    try:
        with stage(leave=chosen.keep) as found, found.space("demo") as space:
            findings = _play(console, found, space)
    except (StepFailed, InVain) as problem:
        console.print(str(problem), soft_wrap=True, markup=False)
        return FAILED
    conclude(console, findings)
    return DONE if findings.good else FAILED


def _play(console: Console, found: Stage, space: Space) -> Findings:
    """Apply the pipeline, inject the failures, recount.

    Raises:
        StepFailed: the demonstration did not complete.
    """
    document = yaml.safe_load(MANIFEST.read_text())
    parsed = parse_pipeline(document)
    assert not isinstance(parsed, Refusal)  # noqa: S101 - it is the demonstration's own
    output = space.shared / "totals"
    open_directory(output)
    payments = Payments(parsed.spec.streams[0], space.shared / "payments")
    pipeline = TrialPipeline(space, with_shared_directory(document))
    story = KindStory(found, pipeline, payments, speaker(console))
    pipeline.apply()
    try:
        with View(console, found.cluster, space.name, pipeline.name, output):
            story.play()
    finally:
        payments.end()
    return Findings(
        rows_in=payments.written,
        recount=recount(payments.rows(), output),
        gaps=gaps_of(story.failures, story.resizes, story.warm_at, output),
        failures=tuple(story.failures),
        resizes=tuple(story.resizes),
        take_overs=story.status.counters.take_overs,
    )


if __name__ == "__main__":
    sys.exit(main())

"""Make targets one after the other and some beside them, each timed.

`python -m tests.stages unit laptop --beside smoke`, from the project's root. A target may have
variables: `python -m tests.stages 'simulate SEED=2'`.
"""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from tests.stages.lanes import Stage, run_lanes

INTERRUPTED = 130


def main() -> int:
    """1 if a stage failed or did not run, 130 after an interrupt."""
    options = _options()
    signal.signal(signal.SIGTERM, _interrupt)
    live, beside = ([_target(each) for each in lane] for lane in (options.live, options.beside))
    try:
        ended = run_lanes(live, beside, sys.stdout, keep_going=options.keep_going)
    except KeyboardInterrupt:
        return INTERRUPTED
    sys.stdout.write("\n" + "".join(f"{each}\n" for each in ended))
    return int(len(ended) < len(live) + len(beside) or any(each.code != 0 for each in ended))


def _target(name: str) -> Stage:
    return Stage(name, ["make", *name.split()])


def _interrupt(_: int, __: FrameType | None) -> None:
    """End as with Ctrl-C."""
    raise KeyboardInterrupt


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.stages", description=__doc__)
    parser.add_argument("live", nargs="+", metavar="TARGET", help="seen while it runs")
    parser.add_argument(
        "--beside", nargs="*", default=[], metavar="TARGET", help="shown at its end"
    )
    parser.add_argument("--keep-going", action="store_true", help="after a failure too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

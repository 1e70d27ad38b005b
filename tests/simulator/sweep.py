"""Plants every bug for every seed, and tells how soon each was found: `make plants`.

Prints the table of docs/simulator.md. Exit code 1 if some seed did not find a bug.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

from tandem_simulator.campaign.campaign import run_campaign
from tandem_simulator.campaign.seeded_bugs import PLANTS


class Found(NamedTuple):
    """The first schedule of a seed that a bug broke; None for both if there was none."""

    plant: str
    seed: int
    schedule: int | None
    kind: str | None


def main() -> int:
    """Sweep, with a line for each finding while it lasts."""
    options = _options()
    findings: list[Found] = []
    for found in _sweep(options.seeds, options.schedules, options.jobs):
        findings.append(found)
        where = "NOT FOUND" if found.schedule is None else f"schedule {found.schedule}"
        sys.stderr.write(f"{found.plant}, seed {found.seed}: {where}\n")
    sys.stdout.write("".join(f"{line}\n" for line in table(findings)))
    return int(any(found.schedule is None for found in findings))


def table(findings: list[Found]) -> Iterator[str]:
    """A line for each bug: the latest first finding, and what was broken, most frequent first."""
    yield "| bug | found by schedule | what was broken |"
    yield "|---|---|---|"
    for plant in PLANTS:
        of_plant = [found for found in findings if found.plant == plant]
        missed = [str(found.seed) for found in of_plant if found.schedule is None]
        latest = max(
            (found.schedule for found in of_plant if found.schedule is not None), default=0
        )
        kinds = Counter(found.kind for found in of_plant if found.kind is not None)
        broken = ", ".join(f"`{kind}`" for kind, _ in kinds.most_common())
        latest_said = f"NOT FOUND by seed {', '.join(missed)}" if missed else str(latest)
        yield f"| `{plant}` | {latest_said} | {broken} |"


def _sweep(seeds: int, schedules: int, jobs: int) -> Iterator[Found]:
    work = partial(_first, schedules)
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, product(PLANTS, range(1, seeds + 1)))


def _first(schedules: int, case: tuple[str, int]) -> Found:
    plant, seed = case
    failed = run_campaign(seed, range(schedules), plant).failed
    if not failed:
        return Found(plant, seed, None, None)
    return Found(plant, seed, failed[0].number, failed[0].violation.kind)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="seeds 1 to this (10)")
    parser.add_argument("--schedules", type=int, default=5000, help="at most so many each (5000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""The mutation check: `python -m tests.mutation`, from the project's root."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from time import monotonic

from tests.mutation.mutants import Mutant, choose, find
from tests.mutation.report import Check, document, survivors
from tests.mutation.trial import PROTOCOL, SURVIVED, Workshop

ROOT = Path(__file__).parents[2]
MEMORY = ROOT / "build/mutation.json"
"""Outcomes of the last run, for `--survivors`."""
DOCUMENT = ROOT / "docs/mutation.md"
GOAL = 0.95


def main() -> int:
    options = _options()
    protocol = ROOT / PROTOCOL
    sources = {
        path.relative_to(protocol).as_posix(): path.read_bytes()
        for path in sorted(protocol.rglob("*.py"))
    }
    candidates = [mutant for name, source in sources.items() for mutant in find(name, source)]
    mutants = choose(candidates, sources, options.mutants, options.seed)
    known: dict[str, str] = json.loads(MEMORY.read_text()) if options.survivors else {}
    todo = [m for m in mutants if known.get(m.key, SURVIVED) == SURVIVED]
    outcomes = {m.key: known[m.key] for m in mutants if m not in todo}
    outcomes |= _try_all(todo, options)
    MEMORY.parent.mkdir(exist_ok=True)
    MEMORY.write_text(json.dumps(outcomes, indent=1))
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    check = Check(
        date, options.seed, options.schedules, len(candidates), mutants, outcomes, sources
    )
    if not options.dry:
        DOCUMENT.write_text(document(check, ROOT))
    killed = sum(1 for outcome in outcomes.values() if outcome != SURVIVED)
    for mutant in survivors(check):
        before, after = mutant.diff(sources[mutant.module])
        _say(f"{mutant.module}:{mutant.line} {mutant.kind} [{mutant.key}]\n- {before}\n+ {after}\n")
    _say(f"{killed} of {len(mutants)} killed, {100 * killed / len(mutants):.1f} %\n")
    return 0 if killed >= GOAL * len(mutants) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=400, help="simulated for each survivor")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--survivors", action="store_true", help="try only those that survived the last run"
    )
    parser.add_argument("--dry", action="store_true", help="leave the document as it is")
    return parser.parse_args()


def _try_all(mutants: list[Mutant], options: argparse.Namespace) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation-") as directory:
        free: Queue[Workshop] = Queue()
        for number in range(options.workers):
            free.put(Workshop(ROOT, Path(directory) / f"copy-{number}"))
        _check_the_copy(free, Path(directory))

        def try_one(mutant: Mutant) -> str:
            workshop = free.get()
            try:
                return workshop.try_out(mutant, options.schedules, options.seed)
            finally:
                free.put(workshop)

        with ThreadPoolExecutor(options.workers) as pool:
            waiting = {pool.submit(try_one, mutant): mutant for mutant in mutants}
            for done in as_completed(waiting):
                mutant = waiting[done]
                outcomes[mutant.key] = done.result()
                _say(
                    f"{len(outcomes):4}/{len(mutants)} {monotonic() - began:5.0f} s  "
                    f"{outcomes[mutant.key]:10}  {mutant.module}:{mutant.line} {mutant.kind}\n"
                )
    return outcomes


def _check_the_copy(free: Queue[Workshop], directory: Path) -> None:
    """Without a mistake everything passes, and it is the copy that is tried."""
    workshop = free.get()
    found = workshop.where_the_protocol_is()
    if not Path(found).resolve().is_relative_to(directory.resolve()):
        sys.exit(f"a trial would import {found}")
    if not (workshop.unit_tests_pass() and workshop.simulation_passes(5, 1)):
        sys.exit("the tests fail without any mutant")
    free.put(workshop)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

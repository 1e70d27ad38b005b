"""The soak: `python -m tests.soak --faults 200 --changes 30 --seed 1`, from the project's root."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from tests.soak.campaign import Made
from tests.soak.changes import ChangeMade
from tests.soak.report import change_line, document, progress_line, sentences, table
from tests.soak.soaking import soak

ROOT = Path(__file__).parents[2]


def main() -> int:
    options = _options()
    console = Console(highlight=False, soft_wrap=True)
    number = 0

    def progress(made: Made) -> None:
        nonlocal number
        number += 1
        console.print(progress_line(made, number, options.faults), markup=False)

    home = Path(tempfile.mkdtemp(prefix="tandem-soak-"))
    what = f"{options.faults} faults and {options.changes} changes"
    console.print(f"soak of {what}, seed {options.seed}, in {home}")

    def told(made: ChangeMade) -> None:
        console.print(change_line(made), markup=False)

    found = soak(home, options.faults, options.seed, progress, options.changes, told)
    console.print(table(found))
    for sentence in sentences(found):
        console.print(sentence)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document(found), indent=1))
    if not found.good:
        console.print(f"NOT GOOD; everything is still in {home}")
        return 1
    shutil.rmtree(home)
    console.print("good")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--changes", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=ROOT / "build/soak.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

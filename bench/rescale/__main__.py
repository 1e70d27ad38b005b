"""`python -m bench.rescale`: how long the output pauses when a running pipeline is resized.

One pair becomes two and one again while rows flow, and a key with half of the rows moves to another
pair. The comparison is a plain query that is stopped, whose state is repartitioned offline, and
that is restarted; and Tandem without a change for as long.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial

from bench.rescale.changes import Case, Setting
from bench.rescale.picture import draw
from bench.rescale.plain_side import name_of, resize_plain
from bench.rescale.tandem_side import HOT, HOT_SHARE, MORE, move_hot_key, resize, stay, unchanged
from bench.rescale.told import data, describe
from bench.streaming.plain_run import Launch
from bench.streaming.report import Attempts, arguments_parser, conditions, report

SIZES = {100_000: (500, 1536), 1_000_000: (2000, 3072)}
"""Interval in milliseconds and memory of a driver in MiB, by the keys they are meant for."""
RESIZE, CALM, KEY, PLAIN = "resize", "unchanged", "hot-key", "plain"
PARTS = (RESIZE, CALM, KEY, PLAIN)

_CALM_SECONDS = 40.0
"""Length of a period without a change if there is no change to compare with."""


def setting_of(keys: int, tries: int, rate: int) -> Setting:
    """The interval and memory for a number of keys: those of the next larger size."""
    size = min((size for size in SIZES if size >= keys), default=max(SIZES))
    return Setting(keys, *SIZES[size], tries, rate)


def measure(
    setting: Setting, parts: Sequence[str], with_key: bool, attempts: Attempts
) -> list[Case]:
    """Measure all parts with one size of state."""
    cases: list[Case] = []

    def run(name: str, measured: Callable[[], list[Case]]) -> None:
        for found in attempts.run(f"{name}, {setting.keys:,} keys", measured):
            cases.extend(found)

    if RESIZE in parts:
        run("Tandem, one pair to two and back", partial(resize, setting))
    lengths = [change.took for case in cases if case.name == MORE for change in case.changes]
    for pairs in (1, 2) if CALM in parts else ():
        calm = lengths or [_CALM_SECONDS] * setting.tries
        run(unchanged(pairs), partial(stay, setting, pairs, calm))
    if KEY in parts and with_key:
        run(HOT, partial(move_hot_key, setting))
    for launch in Launch if PLAIN in parts else ():
        run(name_of(launch), partial(resize_plain, launch, setting))
    return cases


def main(arguments: Sequence[str]) -> int:
    """Measure, print the results and write them to files."""
    parser = arguments_parser("rescale", __doc__)
    parser.prog = "python -m bench.rescale"
    parser.add_argument("--tries", type=int, default=5, help="changes of each kind (5)")
    parser.add_argument("--keys", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rate", type=int, default=1_000, help="rows per second (1000)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    chosen = parser.parse_args(arguments)
    found = conditions(
        {"cores of a driver": 1, "splits": 2, "rate": chosen.rate, "tries": chosen.tries}
        | {"share of rows of the hot key": HOT_SHARE}
    )
    attempts = Attempts()
    cases = [
        case
        for keys in chosen.keys
        for case in measure(
            setting_of(keys, chosen.tries, chosen.rate),
            chosen.parts,
            keys == min(chosen.keys),
            attempts,
        )
    ]
    body = describe(cases) + attempts.told()
    report(chosen, "rescale", found, body, data(cases), partial(draw, cases))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

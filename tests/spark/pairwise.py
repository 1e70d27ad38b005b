"""Few cases in which every two choices meet."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product

Choice = tuple[str, object]
"""A name of what is chosen, and the value."""


def pairwise(choices: Mapping[str, Sequence[object]]) -> list[tuple[object, ...]]:
    """Return cases, each with a value for each name, so that every two values are in one of them.

    The two longest lists decide how many cases there are at least: each of their pairs begins a
    case, whose other values are those that meet most for the first time.
    """
    names = sorted(choices, key=lambda name: -len(choices[name]))
    missing = {
        frozenset(((one, a), (other, b)))
        for one, other in combinations(names, 2)
        for a, b in product(choices[one], choices[other])
    }
    first, second, *rest = names
    fixed = [{first: a, second: b} for a, b in product(choices[first], choices[second])]
    cases = [_completed(case, rest, choices, missing) for case in fixed]
    while missing:
        pair = min(missing, key=repr)
        unchosen = [name for name in names if name not in dict(pair)]
        cases.append(_completed(dict(pair), unchosen, choices, missing))
    return [tuple(case[name] for name in choices) for case in cases]


def pairs_of(case: Mapping[str, object]) -> set[frozenset[Choice]]:
    """Return every two choices that meet in a case."""
    return {frozenset(pair) for pair in combinations(case.items(), 2)}


def _completed(
    case: dict[str, object],
    names: Sequence[str],
    choices: Mapping[str, Sequence[object]],
    missing: set[frozenset[Choice]],
) -> dict[str, object]:
    """Choose the other values, and strike off what meets."""
    options = [
        case | dict(zip(names, values, strict=True))
        for values in product(*(choices[name] for name in names))
    ]
    best = max(options, key=lambda option: len(pairs_of(option) & missing))
    missing -= pairs_of(best)
    return best

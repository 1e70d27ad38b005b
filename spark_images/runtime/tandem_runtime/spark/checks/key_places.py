"""Finds the key in the state of a query's operators.

Spark partitions an operator's state by expressions that are the first fields of the state's key.
Their names do not say which one holds a column of the key (a join drops them), so the place is
found by following the columns through the plan, and handed on by position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem_runtime.spark.checks.keyed import KeyedPart, key_columns
from tandem_runtime.spark.checks.plan import Expression, PlanOperator


@dataclass(frozen=True, slots=True)
class StateOperator:
    """A stateful operator, as Spark plans it for a batch."""

    number: int
    name: str
    """Its name in the checkpoint."""
    partitioned_by: tuple[tuple[Expression, ...], ...]
    """The expressions that Spark partitions state by: two tuples for a join, one for each side,
    else one. Empty if Spark's class is not known here."""


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Which of the expressions that Spark partitions by hold the key's columns, in their order."""

    operator: int
    name: str
    positions: tuple[int, ...]


class UnknownKeyPlace(Exception):
    """The state of an operator cannot be moved by key."""

    def __init__(self, operator: StateOperator, reason: str) -> None:
        super().__init__(f"operator {operator.number}, {operator.name}: {reason}")
        self.operator = operator


def find_key_places(
    root: PlanOperator, keys: Mapping[str, tuple[str, ...]], operators: Sequence[StateOperator]
) -> tuple[KeyPlace, ...]:
    """Find the key in the state of each operator.

    Args:
        root: the analyzed plan.
        keys: the streams' keys.
        operators: the stateful operators that Spark makes of the plan.

    Raises:
        UnknownKeyPlace: an operator's state is not known to hold the key.
    """
    columns = key_columns(root, keys)
    width = len(next(iter(keys.values())))
    return tuple(
        KeyPlace(one.number, one.name, _positions(one, columns, width)) for one in operators
    )


def _positions(
    operator: StateOperator, columns: Mapping[int, frozenset[KeyedPart]], width: int
) -> tuple[int, ...]:
    if not operator.partitioned_by:
        raise UnknownKeyPlace(operator, "its state has no known form")
    sides = [_places(side, columns) for side in operator.partitioned_by]
    found = []
    for part in range(width):
        known = [places for side in sides if (places := side.get(part))]
        places = set.intersection(*known) if known else set()
        if not places:
            problem = "both sides do not agree on" if known else "it is not known to hold"
            raise UnknownKeyPlace(operator, f"{problem} column {part + 1} of the key")
        found.append(min(places))
    return tuple(found)


def _places(
    expressions: tuple[Expression, ...], columns: Mapping[int, frozenset[KeyedPart]]
) -> dict[int, set[int]]:
    """Return the places of each part of the key; at all of them is the same value.

    A column that is empty after an outer join counts only if no other one holds the part, and only
    one such column is there. The query was checked, so the operator then is that join itself.
    """
    sure: dict[int, set[int]] = {}
    with_gap: dict[int, set[int]] = {}
    for place, expression in enumerate(expressions):
        parts = columns.get(expression.column, ()) if expression.column is not None else ()
        always = all(part.gap is None for part in parts)
        for part in parts:
            (sure if always else with_gap).setdefault(part.position, set()).add(place)
    alone = {part: places for part, places in with_gap.items() if len(places) == 1}
    return {**alone, **sure}

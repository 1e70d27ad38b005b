"""Checks that a query combines only rows of the same pair.

The key of its stream determines a row's pair. So every operation that combines rows (grouping,
deduplication, state, a join of streams) must do so by columns that hold the key, unchanged. The
check tracks these columns from the streams upwards, through renamings, joins and unions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from tandem_runtime.spark.checks.plan import Expression, Join, PlanOperator
from tandem_runtime.spark.checks.refusals import Finding, Reason, list_of

_RENAMING = frozenset({"Alias"})
_COMPARING = frozenset({"EqualTo", "EqualNullSafe"})
_HANDING_ON = frozenset({"Filter", "SubqueryAlias", "View"})
_BY_POSITION = frozenset({"CTERelationRef", "Union"})
_WITHOUT_GAPS = frozenset({"Cross", "Inner"})
_LEFT_WHOLE = _WITHOUT_GAPS | {"LeftOuter", "LeftSemi", "LeftAnti"}
_RIGHT_WHOLE = _WITHOUT_GAPS | {"RightOuter"}
_IN_SQL = {"Aggregate": "GROUP BY", "Distinct": "DISTINCT over"}


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """The key's column at `position`, held unchanged by a column of the plan.

    After an outer join the column may be NULL instead, where its side has no row. `gap` then names
    the join and the side.
    """

    position: int
    gap: tuple[int, str] | None = None


Parts = Mapping[int, KeyedPart]
"""The columns that hold a part of the key, by their ids."""


def not_keyed(root: PlanOperator, keys: Mapping[str, tuple[str, ...]]) -> list[Finding]:
    """Find operations that combine rows of different pairs; `keys` are the streams' keys."""
    walk = _Walk(keys)
    walk.parts(root, ())
    return list(dict.fromkeys(walk.found))


def key_columns(
    root: PlanOperator, keys: Mapping[str, tuple[str, ...]]
) -> Mapping[int, frozenset[KeyedPart]]:
    """Return all columns of a plan that hold a part of the key, by their ids.

    A column has two entries if it gets a gap on its way up.
    """
    walk = _Walk(keys)
    walk.parts(root, ())
    return {column: frozenset(parts) for column, parts in walk.columns.items()}


class _Walk:
    """Walks through a plan from the bottom up and collects findings."""

    def __init__(self, keys: Mapping[str, tuple[str, ...]]) -> None:
        self.keys = keys
        self.width = len(next(iter(keys.values())))
        self.found: list[Finding] = []
        self.columns: dict[int, set[KeyedPart]] = {}
        self._joins = count()

    def parts(self, operator: PlanOperator, known: tuple[Expression, ...]) -> Parts:
        """Return the columns of an operator's output that hold the key.

        `known` are conditions that the operators above require of every row.
        """
        parts = self._parts(operator, known)
        for column, part in parts.items():
            self.columns.setdefault(column, set()).add(part)
        return parts

    def _parts(self, operator: PlanOperator, known: tuple[Expression, ...]) -> Parts:
        if operator.stream is not None:
            return self._stream_parts(operator)
        if operator.join is not None:
            return self._joined(operator, operator.join, known)
        passed: tuple[Expression, ...] = ()
        if operator.kind in _HANDING_ON:
            passed = known + tuple(part for one in operator.expressions for part in _conjuncts(one))
        below = [self.parts(child, passed) for child in operator.children]
        self._check_grouping(operator, below)
        return _handed_on(operator, below)

    def _stream_parts(self, operator: PlanOperator) -> Parts:
        key = self.keys[operator.stream or ""]
        return {
            one.id: KeyedPart(key.index(one.name)) for one in operator.output if one.name in key
        }

    def _check_grouping(self, operator: PlanOperator, below: list[Parts]) -> None:
        for child, parts, grouping in zip(
            operator.children, below, operator.grouping, strict=False
        ):
            if not child.streams():
                continue
            if not grouping:
                self.found.append(_global_aggregate(operator))
            elif missing := self._missing(_part(one, parts) for one in grouping):
                lacking = self._lacking(child, missing)
                if self._missing(parts.values()):
                    lacking += ", and no column here is still known to hold it unchanged"
                self.found.append(_grouping_finding(operator, grouping, lacking))

    def _missing(self, parts: Iterable[KeyedPart | None]) -> tuple[int, ...]:
        there = {part.position for part in parts if part is not None and part.gap is None}
        return tuple(position for position in range(self.width) if position not in there)

    def _joined(self, operator: PlanOperator, join: Join, known: tuple[Expression, ...]) -> Parts:
        passed = known if join.type in _WITHOUT_GAPS else ()
        left, right = (self.parts(child, passed) for child in operator.children)
        if all(child.streams() for child in operator.children):
            conditions = passed + (_conjuncts(join.condition) if join.condition else ())
            if missing := self._missing(_compared(one, left, right) for one in conditions):
                self.found.append(self._join_finding(operator, join, missing))
        number = next(self._joins)
        return {
            **_with_gaps(left, None if join.type in _LEFT_WHOLE else (number, "left")),
            **_with_gaps(right, None if join.type in _RIGHT_WHOLE else (number, "right")),
        }

    def _join_finding(
        self, operator: PlanOperator, join: Join, missing: tuple[int, ...]
    ) -> Finding:
        left, right = operator.children
        on = f" ON {join.condition.text}" if join.condition else ""
        return Finding(
            Reason.JOIN_NOT_KEYED,
            f"the join of {list_of(left.streams())} with {list_of(right.streams())}{on} does not "
            f"compare the keys: {self._lacking(left, missing)} on the left with "
            f"{self._lacking(right, missing)} on the right",
            "compare the streams' key columns with =, in the order of spec.streams[].key, or "
            "choose keys that the join compares; rows with other keys are in other pairs",
        )

    def _lacking(self, below: PlanOperator, missing: tuple[int, ...]) -> str:
        """Name the key's columns at these positions, in the streams below."""
        return " / ".join(
            list_of(tuple(f"{name}.{self.keys[name][position]}" for position in missing))
            for name in below.streams()
        )


def _grouping_finding(
    operator: PlanOperator, grouping: tuple[Expression, ...], lacking: str
) -> Finding:
    called = _IN_SQL.get(operator.kind, f"{operator.called} by")
    by = ", ".join(one.text for one in grouping)
    return Finding(
        Reason.GROUPING_NOT_KEYED,
        f"{called} {by} does not have the key: {lacking}",
        "group by the key's columns too, unchanged (an expression over a column is not the "
        "column), or choose a key that every grouping has: spec.streams[].key",
    )


def _global_aggregate(operator: PlanOperator) -> Finding:
    results = ", ".join(
        (one.children[0] if one.kind == "Alias" else one).text
        for way in operator.results
        for one in way
    )
    return Finding(
        Reason.GLOBAL_AGGREGATE,
        f"{results or operator.kind} aggregates all rows of the stream, without GROUP BY",
        "group by the key and let the reader of the results add up: every pair sees only its own "
        "keys",
    )


def _handed_on(operator: PlanOperator, below: list[Parts]) -> Parts:
    """Return the key parts in an operator's output, from those in its children's output."""
    if operator.kind in _BY_POSITION:
        columns = [
            [parts.get(column.id) for column in child.output]
            for child, parts in zip(operator.children, below, strict=True)
        ]
        return _agreed(operator, columns)
    if operator.results:
        ways = [[_part(one, below[0]) for one in way] for way in operator.results]
        return _agreed(operator, ways)
    if len(below) != 1:
        return {}
    kept = {one.id for one in operator.output}
    return {column: part for column, part in below[0].items() if column in kept}


def _agreed(operator: PlanOperator, ways: list[list[KeyedPart | None]]) -> Parts:
    """Return the key parts on which all ways to compute the output columns agree."""
    agreed: dict[int, KeyedPart] = {}
    for column, parts in zip(operator.output, zip(*ways, strict=True), strict=True):
        first = parts[0]
        if first is not None and all(part == first for part in parts):
            agreed[column.id] = first
    return agreed


def _part(one: Expression, parts: Parts) -> KeyedPart | None:
    """Return the part of the key that an expression holds, unchanged."""
    if one.column is not None:
        return parts.get(one.column)
    if one.kind in _RENAMING:
        return _part(one.children[0], parts)
    if one.kind == "Coalesce":
        return _without_gap([_part(child, parts) for child in one.children])
    return None


def _without_gap(choices: list[KeyedPart | None]) -> KeyedPart | None:
    """Return the part that a coalesce holds: sides of one join fill each other's gaps."""
    parts = [part for part in choices if part is not None]
    if len(parts) < len(choices) or len({part.position for part in parts}) != 1:
        return None
    gaps = {part.gap for part in parts}
    joins = {gap[0] for gap in gaps if gap is not None}
    sides = {gap[1] for gap in gaps if gap is not None}
    filled = None in gaps or (len(joins) == 1 and sides == {"left", "right"})
    return KeyedPart(parts[0].position) if filled else None


def _with_gaps(parts: Parts, gap: tuple[int, str] | None) -> Parts:
    """Return the parts after a join, with the gap if the join may leave their side empty."""
    if gap is None:
        return parts
    return {column: KeyedPart(part.position, gap) for column, part in parts.items() if not part.gap}


def _compared(condition: Expression, left: Parts, right: Parts) -> KeyedPart | None:
    """Return the part of the key that a condition makes equal on both sides."""
    if condition.kind not in _COMPARING:
        return None
    one, other = condition.children
    for first, second in ((one, other), (other, one)):
        part = _part(first, left)
        if part is not None and part == _part(second, right):
            return part
    return None


def _conjuncts(condition: Expression) -> tuple[Expression, ...]:
    if condition.kind != "And":
        return (condition,)
    return tuple(part for child in condition.children for part in _conjuncts(child))

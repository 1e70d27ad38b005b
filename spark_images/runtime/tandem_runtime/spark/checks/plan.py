"""A query's analyzed plan as plain data, so that what is judged needs no Spark.

Only what the checks ask for is kept. A stream of the pipeline is a leaf: how the framework makes
it (its watermark, its filter) is no part of the user's query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_CALLED = {
    "Deduplicate": "dropDuplicates",
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "FlatMapCoGroupsInArrow": "cogroup",
    "FlatMapCoGroupsInPandas": "cogroup",
    "FlatMapGroupsInArrow": "applyInArrow",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithStateInPySpark": "transformWithState",
}


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of an operator's result; the id is the same wherever it is handed through."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, by the name of Spark's class for it and as SQL."""

    kind: str
    text: str
    children: tuple[Expression, ...] = ()
    column: int | None = None
    """The id of the column that it refers to."""
    type: str = ""
    """Spark's name of its type; only where a check asks for it."""
    deterministic: bool = True
    line: int | None = None
    """The line of the SQL text, where Spark knows it."""
    plan: PlanOperator | None = None
    """The plan of a subquery."""

    def everything(self) -> Iterator[Expression]:
        """This expression and all in it, from the outside in."""
        yield self
        for child in self.children:
            yield from child.everything()


@dataclass(frozen=True, slots=True)
class Join:
    """How two sides are brought together; the type is the name of Spark's class for it."""

    type: str
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class PlanOperator:
    """An operator of the plan, by the name of Spark's class for it."""

    kind: str
    children: tuple[PlanOperator, ...] = ()
    output: tuple[PlanColumn, ...] = ()
    expressions: tuple[Expression, ...] = ()
    streaming: bool = True
    stream: str | None = None
    """The name of the stream that this is."""
    results: tuple[tuple[Expression, ...], ...] = ()
    """What the output columns are computed by, in their order; several ways if a row becomes
    several. Empty if columns are handed through."""
    grouping: tuple[tuple[Expression, ...], ...] = ()
    """For each child, what rows are brought together by; one empty tuple for a global aggregate.
    Empty if rows are not brought together."""
    join: Join | None = None
    processing_time: bool = False
    """Whether it has timers or a time to live by the wall clock."""
    output_mode: str = ""
    """The output mode that state in Python is declared with, in small letters."""
    literal: bool = False
    """Whether the rows of a leaf are written in the query itself."""
    text: str = ""
    """What Spark writes for a leaf."""

    @property
    def called(self) -> str:
        """What users know the operator by."""
        return _CALLED.get(self.kind, self.kind)

    def everything(self) -> Iterator[PlanOperator]:
        """This operator and all below it, from the top, those of subqueries included."""
        yield self
        for child in self.children:
            yield from child.everything()
        for outer in self.expressions:
            for expression in outer.everything():
                if expression.plan is not None:
                    yield from expression.plan.everything()

    def streams(self) -> tuple[str, ...]:
        """The names of the streams below, each once, in the order of the plan."""
        return tuple(dict.fromkeys(one.stream for one in self.everything() if one.stream))

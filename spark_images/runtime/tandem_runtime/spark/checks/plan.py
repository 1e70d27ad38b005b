"""A query's analyzed plan as plain data, so that the rules need no Spark.

It has only what the checks use. A stream of the pipeline is a leaf: the operators by which the
framework reads it (watermark, filter) are not part of the user's query.
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
    """A column of an operator's output; operators that pass it through keep its id."""

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
    """Spark's name of its type; only where a check uses it."""
    deterministic: bool = True
    line: int | None = None
    """The line of the SQL text, where Spark knows it."""
    plan: PlanOperator | None = None
    """The plan of a subquery."""

    def everything(self) -> Iterator[Expression]:
        """Yield this expression and all inside it, the outermost first."""
        yield self
        for child in self.children:
            yield from child.everything()


@dataclass(frozen=True, slots=True)
class Join:
    """The type of a join, by the name of Spark's class for it, and its condition."""

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
    """The name of the pipeline's stream, if this is one."""
    results: tuple[tuple[Expression, ...], ...] = ()
    """The expressions of the output columns, in order; several tuples if a row becomes several
    rows. Empty if columns are passed through."""
    grouping: tuple[tuple[Expression, ...], ...] = ()
    """For each child, the expressions by which rows are combined; one empty tuple for a global
    aggregate. Empty if rows are not combined."""
    join: Join | None = None
    processing_time: bool = False
    """Whether it has timers or a time to live by processing time."""
    output_mode: str = ""
    """The output mode that Python state is declared with, in lower case."""
    literal: bool = False
    """Whether the rows of a leaf are written in the query itself."""
    text: str = ""
    """Spark's text for a leaf."""

    @property
    def called(self) -> str:
        """The name by which users know the operator."""
        return _CALLED.get(self.kind, self.kind)

    def everything(self) -> Iterator[PlanOperator]:
        """Yield this operator and all below it, from the top, including subqueries."""
        yield self
        for child in self.children:
            yield from child.everything()
        for outer in self.expressions:
            for expression in outer.everything():
                if expression.plan is not None:
                    yield from expression.plan.everything()

    def streams(self) -> tuple[str, ...]:
        """Return the names of the streams below, each once, in the order of the plan."""
        return tuple(dict.fromkeys(one.stream for one in self.everything() if one.stream))

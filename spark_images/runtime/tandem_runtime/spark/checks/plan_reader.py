"""Reads an analyzed plan from the JVM; only this module depends on Spark's plan classes."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from tandem_runtime.spark.checks.plan import Expression, Join, PlanColumn, PlanOperator
from tandem_runtime.spark.checks.plan_fingerprint import plan_fingerprint

_LITERAL_LEAVES = frozenset({"LocalRelation", "OneRowRelation", "Range"})
_LITERAL_RDD = "ParallelCollectionRDD"
_NO_NAME = "__auto_generated_subquery_name."
_SHOWN_FIELDS = 25
_COLUMN_ID = re.compile(r"#\d+L?")
_STATE_IN_PYTHON = frozenset({"FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark"})
_SUBQUERIES = frozenset(
    {
        "Exists",
        "FunctionTableSubqueryArgumentExpression",
        "LateralSubquery",
        "ListQuery",
        "ScalarSubquery",
    }
)
_TYPED = frozenset({"Average", "Cast", "Sum"})

Groups = tuple[tuple[Expression, ...], ...]


def read_plan(df: DataFrame, streams: Mapping[str, DataFrame]) -> PlanOperator:
    """Read the plan of a data frame; the pipeline's streams become leaves."""
    plans = {name: _analyzed(frame) for name, frame in streams.items()}
    known = {(_class_name(plan), plan_fingerprint(plan)): name for name, plan in plans.items()}
    return _Reader(known).operator(_analyzed(df))


def read_expressions(sequence: Any) -> tuple[Expression, ...]:
    """Read expressions of an operator, such as one of a physical plan."""
    return _Reader({})._expressions(sequence)


def _analyzed(df: DataFrame) -> Any:
    return df._jdf.queryExecution().analyzed()


class _Reader:
    """Reads one plan and resolves its common table expressions."""

    def __init__(self, streams: Mapping[tuple[str, str], str]) -> None:
        self._streams = streams
        self._kinds = {kind for kind, _ in streams}
        self._table_expressions: dict[int, Any] = {}

    def operator(self, plan: Any) -> PlanOperator:
        kind = _class_name(plan)
        if kind == "WithCTE":
            self._table_expressions |= {one.id(): one.child() for one in _items(plan.cteDefs())}
            return self.operator(plan.plan())
        output = tuple(PlanColumn(one.exprId().id(), one.name()) for one in _items(plan.output()))
        if kind in self._kinds:
            stream = self._streams.get((kind, plan_fingerprint(plan)))
            if stream is not None:
                return PlanOperator(kind, output=output, stream=stream)
        children = self._children(plan, kind)
        return PlanOperator(
            kind,
            children=tuple(map(self.operator, children)),
            output=output,
            expressions=self._expressions(plan.expressions()),
            streaming=plan.isStreaming(),
            results=self._results(plan, kind),
            grouping=self._grouping(plan, kind),
            join=self._join(plan) if kind == "Join" else None,
            processing_time=_time_mode(plan, kind).startswith("ProcessingTime"),
            output_mode=_output_mode(plan, kind),
            literal=_is_literal(plan, kind),
            text="" if children else _leaf_text(plan, kind),
        )

    def _children(self, plan: Any, kind: str) -> list[Any]:
        if kind == "CTERelationRef":
            return [self._table_expressions[plan.cteId()]]
        return _items(plan.children())

    def _results(self, plan: Any, kind: str) -> Groups:
        match kind:
            case "Project":
                return (self._expressions(plan.projectList()),)
            case "Aggregate":
                return (self._expressions(plan.aggregateExpressions()),)
            case "Expand":
                return tuple(map(self._expressions, _items(plan.projections())))
            case _:
                return ()

    def _grouping(self, plan: Any, kind: str) -> Groups:
        read = _GROUPING.get(kind)
        return tuple(map(self._expressions, read(plan))) if read else ()

    def _join(self, plan: Any) -> Join:
        condition = plan.condition()
        return Join(
            _class_name(plan.joinType()).rstrip("$"),
            self._expression(condition.get()) if condition.isDefined() else None,
        )

    def _expressions(self, sequence: Any) -> tuple[Expression, ...]:
        return tuple(map(self._expression, _items(sequence)))

    def _expression(self, one: Any, typed: bool = False) -> Expression:
        kind = _class_name(one)
        text = one.sql().replace(_NO_NAME, "")
        if kind == "AttributeReference":
            value_type = one.dataType().simpleString() if typed else ""
            return Expression(kind, text, column=one.exprId().id(), type=value_type)
        summed = kind in {"Average", "Sum"}
        line = one.origin().line()
        return Expression(
            kind,
            _without_ids(text) if kind == "PythonUDTF" else text,
            children=tuple(self._expression(child, summed) for child in _items(one.children())),
            type=one.dataType().simpleString() if typed or kind in _TYPED else "",
            deterministic=one.deterministic(),
            line=line.get() if line.isDefined() else None,
            plan=self.operator(one.plan()) if kind in _SUBQUERIES else None,
        )


def _first_of_output(child: Any, length: int) -> Any:
    return child.output().take(length)


def _cogrouping(plan: Any) -> list[Any]:
    return [
        _first_of_output(plan.left(), plan.leftGroupingLen()),
        _first_of_output(plan.right(), plan.rightGroupingLen()),
    ]


# For each child of the operator, the expressions by which its rows are combined.
_GROUPING: Mapping[str, Callable[[Any], list[Any]]] = {
    "Aggregate": lambda plan: [plan.groupingExpressions()],
    "Deduplicate": lambda plan: [plan.keys()],
    "DeduplicateWithinWatermark": lambda plan: [plan.keys()],
    "Distinct": lambda plan: [plan.child().output()],
    "FlatMapCoGroupsInArrow": _cogrouping,
    "FlatMapCoGroupsInPandas": _cogrouping,
    "FlatMapGroupsInArrow": lambda plan: [plan.groupingAttributes()],
    "FlatMapGroupsInPandas": lambda plan: [plan.groupingAttributes()],
    "FlatMapGroupsInPandasWithState": lambda plan: [plan.groupingAttributes()],
    "TransformWithStateInPySpark": lambda plan: [
        _first_of_output(plan.child(), plan.groupingAttributesLen())
    ],
}


def _output_mode(plan: Any, kind: str) -> str:
    if kind in _STATE_IN_PYTHON:
        return _class_name(plan.outputMode()).rstrip("$").lower()
    return ""


def _time_mode(plan: Any, kind: str) -> str:
    if kind == "FlatMapGroupsInPandasWithState":
        return _class_name(plan.timeout())
    if kind == "TransformWithStateInPySpark":
        return _class_name(plan.timeMode())
    return ""


def _is_literal(plan: Any, kind: str) -> bool:
    """Whether a leaf's rows are written in the query, or are an RDD made from a list."""
    if kind == "LogicalRDD":
        return _roots(plan.rdd()) == {_LITERAL_RDD}
    return kind in _LITERAL_LEAVES


def _roots(rdd: Any) -> set[str]:
    dependencies = _items(rdd.dependencies())
    if not dependencies:
        return {_class_name(rdd)}
    return set().union(*(_roots(one.rdd()) for one in dependencies))


def _leaf_text(plan: Any, kind: str) -> str:
    if kind == "StreamingRelationV2":
        return f"a source of the kind {plan.sourceName()}"
    return _without_ids(plan.simpleString(_SHOWN_FIELDS))


def _without_ids(text: str) -> str:
    return _COLUMN_ID.sub("", text)


def _class_name(value: Any) -> str:
    name: str = value.getClass().getSimpleName()
    return name


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]

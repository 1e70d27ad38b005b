"""Computes the fingerprint of a query's meaning, which is stored with its state.

Spark checks the shape of state, not its meaning: a `sum` silently continues as `max`. So a
checkpoint keeps the fingerprint of the plan that made it. It is equal in every process that builds
the same query over the same streams, and differs when an expression, an operator, a type, a stream
or a literal row does.

It ignores names of tables, the origin of rows, and what Spark cannot see: the code of Python
functions, unless their text is given, and rows that a Python program passes as an RDD. Another
version of Spark may give another fingerprint.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tandem_core.model.spec import PythonQuery, Query

_NAMING = frozenset({"SubqueryAlias", "View"})
_OF_THE_SESSION = {
    "CollectMetrics": {"dataframeId"},
    "EventTimeWatermark": {"nodeId"},
    "NamedLambdaVariable": {"name"},
}
_TABLE_EXPRESSION_IDS = {"CTERelationDef": "id", "CTERelationRef": "cteId"}


def fingerprint(df: DataFrame, code: str = "") -> str:
    """Return the fingerprint of a data frame; `code` is the Python file that built it."""
    return plan_fingerprint(df._jdf.queryExecution().analyzed(), code)


def query_fingerprint(df: DataFrame, query: Query) -> str:
    """Return the fingerprint of a pipeline's query, including the code of its Python file."""
    program = query.program
    code = Path(program.file).read_text("utf-8") if isinstance(program, PythonQuery) else ""
    return fingerprint(df, code)


def plan_fingerprint(plan: Any, code: str = "") -> str:
    """Return the fingerprint of an analyzed plan of the JVM."""
    content = [normalised(json.loads(plan.toJSON())), list(_leaves(plan)), normalised_code(code)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def normalised(plan: object) -> object:
    """Strip a plan, in Spark's JSON form, of everything that differs between sessions.

    Ids of columns become their order of appearance. Operators that only name things are removed;
    each has one child, so the rest of the list is still a plan.
    """
    return _Normaliser().of(plan)


def normalised_code(code: str) -> str:
    """Strip Python code of comments and layout; return other text unchanged."""
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return code


class _Normaliser:
    """Strips a plan and numbers ids in the order in which they occur."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, object], int] = {}

    def of(self, value: object) -> object:
        if isinstance(value, list):
            return [self.of(item) for item in value if _kind(item) not in _NAMING]
        if isinstance(value, dict):
            return self._of_object(value)
        return value

    def _of_object(self, value: dict[str, object]) -> object:
        kind = _kind(value)
        if kind == "ExprId":
            return self._number("column", value["id"])
        dropped = _OF_THE_SESSION.get(kind, set()) | {"qualifier"}
        kept = {name: item for name, item in value.items() if name not in dropped}
        if kind in _TABLE_EXPRESSION_IDS:
            field = _TABLE_EXPRESSION_IDS[kind]
            kept[field] = self._number("table expression", kept[field])
        return {
            name: self.of(_lasting(item) if name == "metadata" else item)
            for name, item in kept.items()
        }

    def _number(self, family: str, number: object) -> int:
        return self._numbers.setdefault((family, number), len(self._numbers))


def _kind(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    name = value.get("class") or value.get("product-class") or ""
    return str(name).rpartition(".")[2]


def _lasting(metadata: object) -> object:
    """Return the metadata of a column without Spark's internal entries."""
    if not isinstance(metadata, dict):
        return metadata
    return {name: item for name, item in metadata.items() if not name.startswith("__")}


def _leaves(plan: Any) -> Iterator[str]:
    """Yield what the JSON lacks: the stream of a leaf, the rows of a literal table."""
    for part in [plan, *_items(plan.subqueriesAll())]:
        for leaf in _items(part.collectLeaves()):
            kind = leaf.getClass().getSimpleName()
            if kind == "StreamingRelationV2":
                yield f"stream {leaf.extraOptions().get('stream')}"
            elif kind == "LocalRelation":
                yield f"rows {leaf.data().hashCode()}"
            else:
                yield kind


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]

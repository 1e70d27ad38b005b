"""Which plans, as Spark writes them in JSON, are the same query."""

import json
from typing import Any

from tandem_runtime.spark.checks.plan_fingerprint import normalised, normalised_code

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


def expr_id(number: int, jvm: str) -> dict[str, Any]:
    return {"product-class": f"{_EXPRESSIONS}.ExprId", "id": number, "jvmId": jvm}


def attribute(number: int, jvm: str, **more: Any) -> dict[str, Any]:
    base = {"class": f"{_EXPRESSIONS}.AttributeReference", "num-children": 0, "name": "user"}
    return {**base, "exprId": expr_id(number, jvm), "qualifier": f"[{jvm}]", **more}


def plan(start: int, jvm: str, function: str = "Sum", named: bool = False) -> list[Any]:
    """An aggregate over two columns with ids from `start` on."""
    names = [{"class": f"{_LOGICAL}.SubqueryAlias", "num-children": 1, "identifier": jvm}]
    return [
        {
            "class": f"{_LOGICAL}.Aggregate",
            "num-children": 1,
            "groupingExpressions": [[attribute(start, jvm)]],
            "aggregateExpressions": [
                [{"class": f"{_EXPRESSIONS}.{function}"}, attribute(start + 1, jvm)]
            ],
        },
        *(names if named else []),
        {"class": f"{_LOGICAL}.EventTimeWatermark", "num-children": 1, "nodeId": jvm},
        {"class": f"{_LOGICAL}.Leaf", "output": [[attribute(start + 1, jvm)]]},
    ]


def test_ids_names_and_sessions_are_normalised() -> None:
    assert normalised(plan(7, "one")) == normalised(plan(120, "other", named=True))


def test_functions_and_referenced_columns_are_significant() -> None:
    assert normalised(plan(7, "one")) != normalised(plan(7, "one", function="Max"))
    swapped = plan(7, "one")
    swapped[0]["groupingExpressions"] = [[attribute(8, "one")]]
    assert normalised(swapped) != normalised(plan(7, "one"))


def test_text_that_looks_like_id_is_kept() -> None:
    literal = {"class": f"{_EXPRESSIONS}.Literal", "value": "#7", "dataType": "string"}
    assert normalised([literal]) == [literal]


def test_table_expressions_are_renumbered() -> None:
    def table_expressions(number: int) -> list[Any]:
        return [
            {"class": f"{_LOGICAL}.CTERelationDef", "id": number},
            {"class": f"{_LOGICAL}.CTERelationRef", "cteId": number},
            {"class": f"{_LOGICAL}.CTERelationDef", "id": number + 1},
        ]

    assert normalised(table_expressions(0)) == normalised(table_expressions(9))


def test_only_lasting_metadata_is_significant() -> None:
    noted = attribute(1, "one", metadata={"__dataset_id": 7, "spark.watermarkDelayMs": 10})
    plain = attribute(1, "one", metadata={"spark.watermarkDelayMs": 10})
    other = attribute(1, "one", metadata={"spark.watermarkDelayMs": 20})
    assert normalised(noted) == normalised(plain) != normalised(other)


def test_normalised_plan_is_still_json() -> None:
    assert json.dumps(normalised(plan(7, "one")))


def test_layout_and_comments_of_code_are_normalised() -> None:
    assert normalised_code("x = 1  # one") == normalised_code("x = (\n    1\n)")
    assert normalised_code("x = 1") != normalised_code("x = 2")
    assert normalised_code("x = (") == "x = ("

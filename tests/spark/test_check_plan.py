"""What is refused and warned of, on plans made by hand: no Spark needed."""

from dataclasses import replace

import pytest

from tandem_runtime.spark.checks.column_names import misnamed
from tandem_runtime.spark.checks.determinism import doubts, not_deterministic, special_literals
from tandem_runtime.spark.checks.keyed import not_keyed
from tandem_runtime.spark.checks.plan import Expression, Join, PlanColumn, PlanOperator
from tandem_runtime.spark.checks.refusals import Doubt, Finding, Reason

KEYS = {"payments": ("user", "shop"), "refunds": ("payer", "place")}


def stream(name: str, first: int) -> PlanOperator:
    """A stream with its two key columns, an amount and a time, with ids from `first` on."""
    names = (*KEYS[name], "amount", "at")
    output = tuple(PlanColumn(first + position, each) for position, each in enumerate(names))
    return PlanOperator("Project", output=output, stream=name)


PAYMENTS = stream("payments", 1)
REFUNDS = stream("refunds", 11)
USER, SHOP, AMOUNT, AT = 1, 2, 3, 4
PAYER, PLACE, REFUND_AMOUNT = 11, 12, 13


def column(number: int, type_: str = "") -> Expression:
    return Expression("AttributeReference", f"c{number}", column=number, type=type_)


def call(kind: str, *children: Expression, **more: str) -> Expression:
    text = f"{kind.lower()}({', '.join(child.text for child in children)})"
    return Expression(kind, text, children, **more)  # type: ignore[arg-type]


def alias(expression: Expression) -> Expression:
    return Expression("Alias", f"{expression.text} AS x", (expression,))


def select(child: PlanOperator, *results: tuple[int, Expression]) -> PlanOperator:
    """A projection to columns with these ids."""
    expressions = tuple(expression for _, expression in results)
    output = tuple(PlanColumn(number, f"c{number}") for number, _ in results)
    return PlanOperator(
        "Project", (child,), output, expressions, results=(expressions,), streaming=child.streaming
    )


def group(child: PlanOperator, *by: Expression, kind: str = "Aggregate") -> PlanOperator:
    return PlanOperator(kind, (child,), child.output, by, grouping=(by,))


def join(
    left: PlanOperator, right: PlanOperator, condition: Expression | None, kind: str = "Inner"
) -> PlanOperator:
    return PlanOperator(
        "Join",
        (left, right),
        left.output + right.output,
        (condition,) if condition else (),
        join=Join(kind, condition),
    )


def both(*conditions: Expression) -> Expression:
    whole, *rest = conditions
    for one in rest:
        whole = call("And", whole, one)
    return whole


SAME_KEYS = both(
    call("EqualTo", column(USER), column(PAYER)), call("EqualTo", column(PLACE), column(SHOP))
)


def reasons(findings: list[Finding]) -> list[str]:
    assert all(finding.message and finding.hint for finding in findings)
    return [finding.reason for finding in findings]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("CurrentTimestamp", Reason.WALL_CLOCK),
        ("Now", Reason.WALL_CLOCK),
        ("CurrentDate", Reason.WALL_CLOCK),
        ("LocalTimestamp", Reason.WALL_CLOCK),
        ("CurrentTime", Reason.WALL_CLOCK),
        ("Rand", Reason.RANDOMNESS),
        ("Randn", Reason.RANDOMNESS),
        ("Uuid", Reason.RANDOMNESS),
        ("Shuffle", Reason.RANDOMNESS),
        ("KllSketchAggBigint", Reason.RANDOMNESS),
        ("MonotonicallyIncreasingID", Reason.PLACEMENT),
        ("SparkPartitionID", Reason.PLACEMENT),
        ("InputFileName", Reason.PLACEMENT),
        ("InputFileBlockStart", Reason.PLACEMENT),
    ],
)
def test_expression_that_differs_between_twins_is_refused_anywhere(kind: str, reason: str) -> None:
    plan = select(PAYMENTS, (USER, column(USER)), (30, alias(call("Upper", call(kind)))))
    (finding,) = not_deterministic(group(plan, column(USER)))
    assert finding.reason == reason
    assert call(kind).text in finding.message
    assert call("Upper", call(kind)).text in finding.message


def test_only_innermost_nondeterministic_expression_is_named() -> None:
    inner = replace(call("PythonUDF", column(USER)), deterministic=False, line=3)
    outer = replace(call("Concat", inner), deterministic=False)
    (finding,) = not_deterministic(select(PAYMENTS, (30, alias(outer))))
    assert finding.reason == Reason.NOT_DETERMINISTIC
    assert finding.message.startswith("line 3: pythonudf(c1)")


@pytest.mark.parametrize(
    ("to_time", "text", "refused"),
    [
        (call("Cast", Expression("Literal", "'now'"), type="timestamp"), "now", True),
        (call("Cast", Expression("Literal", "' Today UTC'"), type="date"), "today", True),
        (call("ParseToTimestamp", Expression("Literal", "'yesterday'")), "yesterday", True),
        (call("Cast", Expression("Literal", "'now'"), type="string"), "a text", False),
        (call("Cast", Expression("Literal", "'2024-01-01'"), type="date"), "a day", False),
        (call("Cast", column(USER), type="date"), "a column", False),
    ],
)
def test_texts_that_mean_current_time_are_refused(
    to_time: Expression, text: str, refused: bool
) -> None:
    found = reasons(not_deterministic(select(PAYMENTS, (30, alias(to_time)))))
    assert found == ([Reason.WALL_CLOCK] if refused else []), text


def test_typed_literals_that_mean_current_time_are_found_in_sql() -> None:
    sql = "SELECT user,\n  DATE 'today' AS d, TIMESTAMP_NTZ\"now\" AS t, DATE '2024-01-01' AS e"
    found = special_literals(sql)
    assert reasons(found) == [Reason.WALL_CLOCK, Reason.WALL_CLOCK]
    assert all(finding.message.startswith("line 2: ") for finding in found)


def test_subqueries_are_checked() -> None:
    inner = select(PlanOperator("LocalRelation", literal=True), (30, alias(call("Uuid"))))
    lookup = Expression("ListQuery", "list", plan=inner)
    plan = PlanOperator("Filter", (PAYMENTS,), PAYMENTS.output, (call("InSubquery", lookup),))
    assert reasons(not_deterministic(plan)) == [Reason.RANDOMNESS]


def test_explicit_watermark_is_refused() -> None:
    plan = PlanOperator("EventTimeWatermark", (PAYMENTS,), PAYMENTS.output, (column(AT),))
    assert reasons(not_deterministic(plan)) == [Reason.OWN_WATERMARK]


@pytest.mark.parametrize("kind", ["FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark"])
def test_processing_time_timers_are_refused(kind: str) -> None:
    state = replace(group(PAYMENTS, column(USER), column(SHOP), kind=kind), output_mode="update")
    assert not not_deterministic(state)
    timed = replace(state, processing_time=True)
    assert reasons(not_deterministic(timed)) == [Reason.PROCESSING_TIME]


def test_state_in_complete_mode_is_refused() -> None:
    state = group(PAYMENTS, column(USER), column(SHOP), kind="TransformWithStateInPySpark")
    plan = replace(state, output_mode="complete")
    assert reasons(not_deterministic(plan)) == [Reason.COMPLETE_MODE]


def test_sampling_is_refused() -> None:
    assert reasons(not_deterministic(PlanOperator("Sample", (PAYMENTS,)))) == [Reason.RANDOMNESS]


def test_only_literal_tables_may_be_joined() -> None:
    condition = call("EqualTo", column(USER), column(50))
    table = PlanOperator(
        "LocalRelation", output=(PlanColumn(50, "u"),), streaming=False, literal=True
    )
    plan = join(PAYMENTS, table, condition)
    assert not not_deterministic(plan)
    assert not not_keyed(plan, KEYS)
    file = replace(table, kind="LogicalRelation", literal=False, text="Relation [u] parquet")
    (finding,) = not_deterministic(join(PAYMENTS, file, condition))
    assert finding.reason == Reason.CHANGING_TABLE
    assert file.text in finding.message


def test_stream_outside_pipeline_is_refused() -> None:
    other = PlanOperator("StreamingRelationV2", output=(PlanColumn(50, "u"),), text="rate")
    plan = group(join(PAYMENTS, other, None), column(50))
    assert Reason.FOREIGN_STREAM in reasons(not_deterministic(plan))
    assert not not_keyed(PlanOperator("Join", (PAYMENTS, other), join=Join("Inner")), KEYS)


def test_aggregate_without_grouping_is_global() -> None:
    count = alias(call("Count", column(USER)))
    plan = replace(group(PAYMENTS), results=((count,),), output=(PlanColumn(30, "n"),))
    (finding,) = not_keyed(plan, KEYS)
    assert finding.reason == Reason.GLOBAL_AGGREGATE
    assert "count(c1)" in finding.message


@pytest.mark.parametrize(
    "kind",
    [
        "Aggregate",
        "Distinct",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInPandasWithState",
        "TransformWithStateInPySpark",
    ],
)
def test_grouping_operator_needs_every_key_column(kind: str) -> None:
    whole = group(PAYMENTS, column(SHOP), column(AMOUNT), column(USER), kind=kind)
    assert not not_keyed(whole, KEYS)
    (finding,) = not_keyed(group(PAYMENTS, column(USER), column(AMOUNT), kind=kind), KEYS)
    assert finding.reason == Reason.GROUPING_NOT_KEYED
    assert "payments.shop" in finding.message
    assert "payments.user" not in finding.message


def test_expression_over_key_is_not_key() -> None:
    plan = group(PAYMENTS, call("Upper", column(USER)), column(SHOP))
    assert reasons(not_keyed(plan, KEYS)) == [Reason.GROUPING_NOT_KEYED]


def test_key_is_followed_through_renamings() -> None:
    renamed = select(PAYMENTS, (21, alias(column(USER))), (22, alias(column(SHOP))))
    again = select(
        PlanOperator("SubqueryAlias", (renamed,), renamed.output), (31, alias(column(22)))
    )
    assert not not_keyed(group(renamed, column(21), column(22)), KEYS)
    assert reasons(not_keyed(group(again, column(31)), KEYS)) == [Reason.GROUPING_NOT_KEYED]


def test_column_renamed_to_key_name_is_not_key() -> None:
    renamed = select(PAYMENTS, (21, alias(column(AMOUNT))), (SHOP, column(SHOP)))
    renamed = replace(renamed, output=(PlanColumn(21, "user"), PlanColumn(SHOP, "shop")))
    assert reasons(not_keyed(group(renamed, column(21), column(SHOP)), KEYS))


def test_output_of_user_code_is_not_known_to_be_key() -> None:
    mapped = PlanOperator(
        "MapInPandas", (PAYMENTS,), (PlanColumn(41, "user"), PlanColumn(42, "shop"))
    )
    (finding,) = not_keyed(group(mapped, column(41), column(42)), KEYS)
    assert "no column here" in finding.message


def test_expanded_rows_keep_key_only_if_all_projections_have_it() -> None:
    def expand(*ways: tuple[Expression, ...]) -> PlanOperator:
        output = (PlanColumn(21, "user"), PlanColumn(22, "shop"))
        return PlanOperator("Expand", (PAYMENTS,), output, results=ways)

    null = Expression("Literal", "NULL")
    sliding = expand((column(USER), column(SHOP)), (column(USER), column(SHOP)))
    rollup = expand((column(USER), column(SHOP)), (column(USER), null))
    assert not not_keyed(group(sliding, column(21), column(22)), KEYS)
    assert reasons(not_keyed(group(rollup, column(21), column(22)), KEYS))


def test_union_has_key_if_all_its_sides_have_it() -> None:
    def union(*numbers: int) -> PlanOperator:
        right = select(REFUNDS, *((number, column(number)) for number in numbers))
        output = tuple(PlanColumn(60 + position, "x") for position in range(2))
        left = select(PAYMENTS, (USER, column(USER)), (SHOP, column(SHOP)))
        return PlanOperator("Union", (left, right), output)

    assert not not_keyed(group(union(PAYER, PLACE), column(60), column(61)), KEYS)
    assert reasons(not_keyed(group(union(PLACE, PAYER), column(60), column(61)), KEYS))
    assert reasons(not_keyed(group(union(PAYER, REFUND_AMOUNT), column(60), column(61)), KEYS))


def test_common_table_expression_is_followed() -> None:
    output = (
        PlanColumn(71, "user"),
        PlanColumn(72, "shop"),
        PlanColumn(73, "amount"),
        PlanColumn(74, "at"),
    )
    reference = PlanOperator("CTERelationRef", (PAYMENTS,), output)
    assert not not_keyed(group(reference, column(71), column(72)), KEYS)
    assert reasons(not_keyed(group(reference, column(71), column(73)), KEYS))


@pytest.mark.parametrize("kind", ["Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi"])
def test_join_of_streams_must_compare_all_key_columns_by_position(kind: str) -> None:
    assert not not_keyed(join(PAYMENTS, REFUNDS, SAME_KEYS, kind), KEYS)
    amounts = call("EqualTo", column(AMOUNT), column(REFUND_AMOUNT))
    half = both(call("EqualTo", column(USER), column(PAYER)), amounts)
    (finding,) = not_keyed(join(PAYMENTS, REFUNDS, half, kind), KEYS)
    assert finding.reason == Reason.JOIN_NOT_KEYED
    assert "payments.shop" in finding.message
    assert "refunds.place" in finding.message
    crossed = both(
        call("EqualTo", column(USER), column(PLACE)), call("EqualTo", column(SHOP), column(PAYER))
    )
    assert reasons(not_keyed(join(PAYMENTS, REFUNDS, crossed, kind), KEYS))


def test_keys_may_be_compared_above_inner_join() -> None:
    third = stream("payments", 81)
    inner = join(PAYMENTS, REFUNDS, None)
    above = both(
        SAME_KEYS,
        call("EqualTo", column(81), column(PAYER)),
        call("EqualNullSafe", column(82), column(PLACE)),
    )
    plan = join(inner, third, None)
    assert not not_keyed(PlanOperator("Filter", (plan,), plan.output, (above,)), KEYS)
    outer = join(PAYMENTS, REFUNDS, None, "LeftOuter")
    assert reasons(not_keyed(PlanOperator("Filter", (outer,), outer.output, (SAME_KEYS,)), KEYS))


@pytest.mark.parametrize(
    ("kind", "left_is_key", "right_is_key"),
    [
        ("Inner", True, True),
        ("LeftOuter", True, False),
        ("RightOuter", False, True),
        ("FullOuter", False, False),
        ("LeftSemi", True, False),
    ],
)
def test_only_preserved_side_of_outer_join_keeps_key(
    kind: str, left_is_key: bool, right_is_key: bool
) -> None:
    joined = join(PAYMENTS, REFUNDS, SAME_KEYS, kind)
    assert left_is_key is not bool(not_keyed(group(joined, column(USER), column(SHOP)), KEYS))
    assert right_is_key is not bool(not_keyed(group(joined, column(PAYER), column(PLACE)), KEYS))
    filled = [call("Coalesce", column(a), column(b)) for a, b in ((PAYER, USER), (SHOP, PLACE))]
    assert not not_keyed(group(joined, *filled), KEYS) or kind == "LeftSemi"


def test_coalesce_with_other_value_is_not_key() -> None:
    joined = join(PAYMENTS, REFUNDS, SAME_KEYS, "FullOuter")
    filled = call("Coalesce", column(USER), Expression("Literal", "'nobody'"))
    shop = call("Coalesce", column(SHOP), column(PLACE))
    assert reasons(not_keyed(group(joined, filled, shop), KEYS)) == [Reason.GROUPING_NOT_KEYED]


def test_both_sides_of_cogroup_need_key() -> None:
    keyed = ((column(USER), column(SHOP)), (column(PAYER), column(PLACE)))
    plan = PlanOperator("FlatMapCoGroupsInPandas", (PAYMENTS, REFUNDS), grouping=keyed)
    assert not not_keyed(plan, KEYS)
    half = replace(plan, grouping=(keyed[0], (column(PAYER),)))
    (finding,) = not_keyed(half, KEYS)
    assert "refunds.place" in finding.message


def test_literal_tables_may_be_grouped_by_anything() -> None:
    table = PlanOperator(
        "LocalRelation", output=(PlanColumn(50, "u"),), streaming=False, literal=True
    )
    assert not not_keyed(join(PAYMENTS, group(table), None), KEYS)


@pytest.mark.parametrize(
    ("expression", "doubt"),
    [
        (call("First", column(AMOUNT)), Doubt.ORDER_DEPENDENT),
        (call("CollectList", column(AMOUNT)), Doubt.ORDER_DEPENDENT),
        (call("MaxBy", column(AMOUNT), column(AT)), Doubt.ORDER_DEPENDENT),
        (call("SortArray", call("CollectList", column(AMOUNT))), None),
        (call("Sum", column(AMOUNT, "double")), Doubt.FLOATING_POINT),
        (call("Average", column(AMOUNT, "float")), Doubt.FLOATING_POINT),
        (call("StddevSamp", column(AMOUNT)), Doubt.FLOATING_POINT),
        (call("SortArray", call("Sum", column(AMOUNT, "double"))), Doubt.FLOATING_POINT),
        (call("Sum", column(AMOUNT, "decimal(10,2)")), None),
        (call("Average", column(AMOUNT, "bigint")), None),
        (call("Max", column(AMOUNT)), None),
        (call("PythonUDF", column(AMOUNT)), Doubt.OPAQUE_CODE),
        (call("ScalaUDF", column(AMOUNT)), Doubt.OPAQUE_CODE),
    ],
)
def test_doubtful_expression_is_warned_about(expression: Expression, doubt: Doubt | None) -> None:
    plan = select(group(PAYMENTS, column(USER), column(SHOP)), (30, alias(expression)))
    assert reasons(doubts(plan)) == ([doubt] if doubt else [])
    assert not not_deterministic(plan)


def test_limit_is_warned_about() -> None:
    plan = PlanOperator("GlobalLimit", (PlanOperator("LocalLimit", (PAYMENTS,)),), PAYMENTS.output)
    assert reasons(doubts(plan)) == [Doubt.LIMIT]


@pytest.mark.parametrize("kind", ["Deduplicate", "DeduplicateWithinWatermark"])
def test_deduplication_by_some_columns_is_warned_about(kind: str) -> None:
    every = [column(one.id) for one in PAYMENTS.output]
    assert not doubts(group(PAYMENTS, *every, kind=kind))
    (finding,) = doubts(group(PAYMENTS, *every[:2], kind=kind))
    assert finding.reason == Doubt.ROW_CHOICE
    assert "amount and at" in finding.message


def test_result_column_names_are_unique_and_not_reserved() -> None:
    names = ("user", "User", "_pair", "total")
    output = tuple(PlanColumn(number, name) for number, name in enumerate(names))
    found = misnamed(PlanOperator("Project", (PAYMENTS,), output))
    assert reasons(found) == [Reason.DUPLICATE_COLUMN, Reason.RESERVED_COLUMN]
    assert not misnamed(PAYMENTS)

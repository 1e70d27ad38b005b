"""Where the key is in an operator's state, from plans made by hand: no Spark needed."""

import pytest

from tandem_runtime.spark.checks.key_places import (
    KeyPlace,
    StateOperator,
    UnknownKeyPlace,
    find_key_places,
)
from tandem_runtime.spark.checks.plan import Expression, Join, PlanColumn, PlanOperator

KEYS = {"payments": ("user", "shop"), "refunds": ("payer", "place")}
USER, SHOP, AMOUNT = 0, 1, 2
PAYER, PLACE = 10, 11


def stream(name: str, first: int) -> PlanOperator:
    names = (*KEYS[name], "amount")
    output = tuple(PlanColumn(first + position, each) for position, each in enumerate(names))
    return PlanOperator("Project", output=output, stream=name)


PAYMENTS = stream("payments", USER)
REFUNDS = stream("refunds", PAYER)


def column(number: int) -> Expression:
    return Expression("AttributeReference", f"c{number}", column=number)


def columns(*numbers: int) -> tuple[Expression, ...]:
    return tuple(map(column, numbers))


def join(kind: str) -> PlanOperator:
    equal = [
        Expression("EqualTo", "=", columns(left, right))
        for left, right in ((USER, PAYER), (SHOP, PLACE))
    ]
    condition = Expression("And", "and", tuple(equal))
    output = PAYMENTS.output + REFUNDS.output
    return PlanOperator("Join", (PAYMENTS, REFUNDS), output, join=Join(kind, condition))


def places(plan: PlanOperator, *partitioned_by: tuple[Expression, ...]) -> tuple[int, ...]:
    operator = StateOperator(3, "any", partitioned_by)
    (found,) = find_key_places(plan, KEYS, [operator])
    assert found == KeyPlace(3, "any", found.positions)
    return found.positions


def test_columns_of_key_are_found_in_order_of_key() -> None:
    assert places(PAYMENTS, columns(SHOP, AMOUNT, USER)) == (2, 0)


def test_key_is_followed_through_renaming() -> None:
    alias = Expression("Alias", "x", (column(USER),))
    renamed = PlanOperator(
        "Project",
        (PAYMENTS,),
        (PlanColumn(20, "x"), PAYMENTS.output[1]),
        results=((alias, column(SHOP)),),
    )
    assert places(renamed, columns(SHOP, 20)) == (1, 0)


@pytest.mark.parametrize("kind", ["Inner", "LeftOuter", "RightOuter", "FullOuter"])
def test_sides_of_join_agree_on_places(kind: str) -> None:
    left, right = columns(AMOUNT, SHOP, USER), columns(12, PLACE, PAYER)
    assert places(join(kind), left, right) == (2, 1)
    cast = Expression("Cast", "cast", columns(PAYER))
    assert places(join(kind), columns(USER, SHOP), (cast, column(PLACE))) == (0, 1)


def test_grouping_above_outer_join_uses_columns_without_gap() -> None:
    assert places(join("LeftOuter"), columns(PAYER, PLACE, SHOP, USER)) == (3, 2)


@pytest.mark.parametrize(
    "partitioned_by",
    [
        (),
        (columns(USER, AMOUNT),),
        ((column(USER), Expression("Upper", "upper", columns(SHOP))),),
        (columns(USER, SHOP), columns(PLACE, PAYER)),
    ],
)
def test_unknown_place_is_refused(partitioned_by: tuple[tuple[Expression, ...], ...]) -> None:
    with pytest.raises(UnknownKeyPlace) as refused:
        places(join("Inner"), *partitioned_by)
    assert refused.value.operator.number == 3


def test_gap_in_two_columns_is_refused() -> None:
    with pytest.raises(UnknownKeyPlace):
        places(join("FullOuter"), columns(USER, PAYER, SHOP, PLACE))

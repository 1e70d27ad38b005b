import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_core.model.ddl.parser import DdlError, parse_schema
from tandem_core.model.ddl.types import (
    Array,
    Column,
    DataType,
    Decimal,
    Map,
    Schema,
    Simple,
    Struct,
)

names = st.text(
    alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
).filter(str.strip)


def columns_of(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[tuple[Column, ...]]:
    column = st.builds(
        Column, names, types, nullable=st.booleans(), comment=st.none() | st.text(max_size=12)
    )
    unique = st.lists(column, min_size=1, max_size=4, unique_by=lambda column: column.name.lower())
    return unique.map(tuple)


simple_types = st.sampled_from(Simple) | st.integers(1, 38).flatmap(
    lambda precision: st.builds(Decimal, st.just(precision), st.integers(0, precision))
)
types = st.recursive(
    simple_types,
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, inner, inner)
        | st.builds(Struct, columns_of(inner))
    ),
    max_leaves=6,
)


@given(st.builds(Schema, columns_of(types)))
def test_schema_round_trips(schema: Schema) -> None:
    assert parse_schema(str(schema)) == schema


@given(st.text(alphabet="ab `<>(),:'\"\\1\nSTRINGarymp", max_size=40))
def test_any_text_parses_or_raises_ddl_error(text: str) -> None:
    try:
        assert parse_schema(text).columns
    except DdlError as error:
        assert error.faults


def test_columns_have_types_nullability_and_comments() -> None:
    schema = parse_schema(
        "user string NOT NULL COMMENT 'it''s', `a b`: DEC(12, 2), tags ARRAY<MAP<STRING, LONG>>,"
        ' place struct<x: double, y double> comment "where"'.replace("''", "\\'")
    )
    assert schema.names == ("user", "a b", "tags", "place")
    assert schema.columns[0] == Column("user", Simple.STRING, nullable=False, comment="it's")
    assert schema.columns[1].type == Decimal(12, 2)
    assert schema.columns[2].type == Array(Map(Simple.STRING, Simple.BIGINT))
    assert schema.columns[3].comment == "where"


@pytest.mark.parametrize(
    ("text", "simple"),
    [("byte", "TINYINT"), ("INTEGER", "INT"), ("real", "FLOAT"), ("Timestamp_LTZ", "TIMESTAMP")],
)
def test_type_aliases_are_resolved(text: str, simple: str) -> None:
    assert parse_schema(f"a {text}").columns[0].type == Simple(simple)


@pytest.mark.parametrize(
    ("text", "piece", "words"),
    [
        ("", "(end of the schema)", "name of a column"),
        ("user", "(end of the schema)", "a type"),
        ("user STRING,", "(end of the schema)", "name of a column"),
        ("1st STRING", "1st", "backticks"),
        ("user STRING amount BIGINT", "amount", "comma"),
        ("user STRING NOT", "(end of the schema)", "NULL"),
        ("user STRING COMMENT x", "x", "quotes"),
        ("tags ARRAY", "(end of the schema)", "<"),
        ("tags ARRAY<STRING", "(end of the schema)", ">"),
        ("tags MAP<STRING>", ">", "comma"),
        ("a DECIMAL(40,2)", "DECIMAL(40,2)", "38"),
        ("a DECIMAL(4,5)", "DECIMAL(4,5)", "precision"),
        ("a DECIMAL(4,5,6)", "[4, 5, 6]", "scale"),
        ("a DECIMAL(x)", "x", "number"),
        ("a VARCHAR(10)", "VARCHAR", "STRING"),
        ("a STRIN", "STRIN", "STRING"),
        ("a INT DEFAULT 3", "DEFAULT", "comma"),
        ("a INT, A INT", "A", "whatever its case"),
        ("a STRUCT<b: INT, b: INT>", "b", "whatever its case"),
        ("a " + "ARRAY<" * 40 + "INT" + ">" * 40, "<", "nested"),
    ],
)
def test_faulty_piece_is_named_with_expectation(text: str, piece: str, words: str) -> None:
    with pytest.raises(DdlError) as caught:
        parse_schema(text)
    (fault,) = caught.value.faults
    assert fault.piece == piece
    assert words in fault.expected


def test_all_unknown_types_are_reported_at_once() -> None:
    with pytest.raises(DdlError) as caught:
        parse_schema("a FOO, b INT, c BAR(3), d DECIMAL(99)")
    assert [fault.piece for fault in caught.value.faults] == ["FOO", "BAR", "DECIMAL(99,0)"]

"""Schemas of small documents: what a declaration becomes."""

import math
from enum import StrEnum
from typing import Any

import pytest

from tandem_core.model.crd.schema import RULES_KEY, SchemaBuilder, arranged, fixed_fields
from tandem_core.model.fields.declarations import Document, Inline, OneOf, document, setting
from tandem_core.model.fields.kinds import (
    Choice,
    DurationKind,
    Flag,
    Kind,
    ListOf,
    Number,
    Size,
    Text,
    Whole,
)
from tandem_core.model.fields.quantities import ByteSize, Duration
from tandem_core.model.fields.rule_declarations import CelRule, Rule
from tandem_core.model.fields.spec_kinds import JsonObject, Quantity, TextMap


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@document
class Inner:
    """A part."""

    size: int = setting(Whole(1, 5), default=2, doc="How large.", fixed=True)
    colour: Colour = setting(Choice(Colour), default=Colour.RED, doc="Which colour.")


@document
class Other:
    """Another part."""


@document
class Outer:
    """A whole."""

    names: tuple[str, ...] = setting(ListOf(Text(), most=3), default=(), doc="Some names.")
    labels: tuple[tuple[str, str], ...] = setting(TextMap(), default=(), doc="L.", fixed=True)
    part: Inner = setting(Document(Inner), default=Inner(), doc="Its part.")
    parts: tuple[Inner, ...] = setting(ListOf(Document(Inner), least=1, most=2), doc="All parts.")
    either: Inner | Other = setting(
        Inline[Inner | Other]({"inner": Document(Inner), "other": Document(Other)}), doc="One."
    )
    hidden: int = setting(Whole(0), default=0, doc="Not shown.", in_resource=False)


def built(judged: bool = True, **rules: Any) -> dict[str, Any]:
    by_class: dict[type[Any], tuple[Rule, ...]] = {Outer: tuple(rules.values())}
    return SchemaBuilder(by_class, judged).schema(Document(Outer), "A whole.")


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Flag(), {"type": "boolean"}),
        (Text(longest=9), {"type": "string", "maxLength": 9}),
        (Whole(1, 5), {"type": "integer", "format": "int64", "minimum": 1, "maximum": 5}),
        (Whole(0), {"type": "integer", "format": "int64", "minimum": 0}),
        (Number(0.0, 2.5), {"type": "number", "minimum": 0, "maximum": 2.5}),
        (Number(0, math.inf), {"type": "number", "minimum": 0}),
        (Choice(Colour), {"type": "string", "enum": ["red", "blue"]}),
        (Choice(Colour, {"green": "no"}), {"type": "string", "maxLength": 20}),
        (DurationKind(Duration(0), Duration(1)), {"type": "string", "maxLength": 32}),
        (Size(ByteSize(0), ByteSize(1)), {"type": "string", "maxLength": 20}),
        (
            TextMap(value=Text(longest=5), most=3),
            {
                "type": "object",
                "maxProperties": 3,
                "additionalProperties": {"type": "string", "maxLength": 5},
            },
        ),
        (
            Quantity("x"),
            {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": "^x$",
                "x-kubernetes-int-or-string": True,
            },
        ),
        (
            JsonObject("a thing", texts=("name",), longest=7),
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "required": ["name"],
                "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 7}},
            },
        ),
        (
            ListOf(Flag(), least=1, most=2, key="name"),
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "boolean"},
            },
        ),
        (
            ListOf(Flag()),
            {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "boolean"}},
        ),
        (Document(Other), {"type": "object"}),
        (
            OneOf({"a": Document(Other)}),
            {
                "type": "object",
                "properties": {"a": {"type": "object", "description": "Another part."}},
            },
        ),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Kind) else "",
)
def test_each_kind_maps_to_its_schema(kind: Kind[Any], schema: dict[str, Any]) -> None:
    assert SchemaBuilder({}, judged=False).schema(kind) == schema


def test_kind_without_schema_raises_type_error() -> None:
    with pytest.raises(TypeError):
        SchemaBuilder({}).schema(object())


def test_document_schema_lists_resource_fields() -> None:
    schema = built()
    assert list(schema["properties"]) == ["names", "labels", "part", "parts", "inner", "other"]
    assert schema["required"] == ["parts"]
    assert schema["properties"]["parts"]["items"]["description"] == "A part."


def test_empty_defaults_are_kept_where_changes_are_checked() -> None:
    properties = built()["properties"]
    assert "default" not in properties["names"]
    assert properties["labels"]["default"] == {}
    assert properties["part"]["default"] == {}
    assert properties["part"]["properties"]["size"]["default"] == 2
    assert properties["part"]["properties"]["colour"]["default"] == "red"


def test_status_schema_has_neither_defaults_nor_rules() -> None:
    text = repr(built(judged=False))
    assert "default" not in text
    assert RULES_KEY not in text


def test_declared_rules_follow_rules_of_the_kind() -> None:
    rules = (
        CelRule("self.a", "expected a", blames="part"),
        CelRule("self.b", "expected b", at="part.size"),
        CelRule("self.c", "expected c", at="parts[]"),
    )
    schema = built(rule=Rule(lambda _: iter(()), rules))
    said = schema[RULES_KEY]
    assert [rule["rule"] for rule in said[1:]] == ["self.a"]
    assert "has(self.inner), has(self.other)" in said[0]["rule"]
    assert said[1]["fieldPath"] == ".part"
    assert schema["properties"]["part"]["properties"]["size"][RULES_KEY] == [
        {"rule": "self.b", "message": "expected b"}
    ]
    assert schema["properties"]["parts"]["items"][RULES_KEY][-1]["rule"] == "self.c"


def test_immutable_fields_are_named_by_path() -> None:
    assert list(fixed_fields(Outer)) == ["labels", "part.size"]


def test_arranging_moves_nested_parts_last_without_changes() -> None:
    schema = built()
    ordered = arranged(schema)
    assert ordered == schema
    assert list(ordered)[-2:] == [RULES_KEY, "properties"]
    assert list(ordered["properties"]["parts"])[-1] == "items"

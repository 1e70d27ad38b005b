"""OpenAPI schemas of the model's kinds and documents."""

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from tandem_core.model.crd.kind_rules import kind_rules
from tandem_core.model.fields.declarations import Document, Inline, OneOf, Setting, settings_of
from tandem_core.model.fields.kinds import (
    Choice,
    DurationKind,
    Flag,
    ListOf,
    Number,
    Size,
    Text,
    Whole,
)
from tandem_core.model.fields.rule_declarations import CelRule, Rule
from tandem_core.model.fields.spec_kinds import (
    JsonObject,
    Quantity,
    SchemaText,
    SqlText,
    TextMap,
)

Schema = dict[str, Any]

RULES_KEY = "x-kubernetes-validations"
_PARTS = ("additionalProperties", "items", "properties")

_LONGEST_DURATION, _LONGEST_SIZE, _LONGEST_CHOICE = 32, 20, 20
"""In characters; the API server estimates the cost of rules from them."""


@dataclass(frozen=True, slots=True)
class SchemaBuilder:
    """Builds the schemas of kinds, with the rules of documents by their class.

    The status is not `judged`, because only the operator writes it: it gets no rules, which would
    cost at every write, and no defaults, which would fill in what the operator left out.
    """

    rules: Mapping[type[Any], tuple[Rule, ...]]
    judged: bool = True

    def schema(self, kind: object, doc: str | None = None) -> Schema:
        """Return the schema of a value of this kind."""
        schema: Schema = {} if doc is None else {"description": doc}
        schema |= self._plain(kind)
        if self.judged:
            for rule in kind_rules(kind):
                add_rule(schema, rule)
            for declared in self.rules.get(kind.cls, ()) if isinstance(kind, Document) else ():
                for rule in declared.cel:
                    add_rule(_part_at(schema, rule.at), rule)
        return schema

    def field(self, declared: Setting) -> Schema:
        """Return the schema of one field, with its description and default."""
        schema = self.schema(declared.kind, declared.doc)
        if self.judged and _has_default(declared):
            nested = isinstance(declared.kind, Document)
            schema["default"] = {} if nested else _json(declared.kind.write(declared.default))
        return schema

    def _plain(self, kind: object) -> Schema:
        match kind:
            case ListOf():
                return self._list(kind)
            case TextMap():
                value = _scalar(kind.value)
                return {"type": "object", "maxProperties": kind.most, "additionalProperties": value}
            case OneOf():
                return {"type": "object", "properties": dict(self._alternatives(kind))}
            case Document():
                return self._document(kind)
        return _scalar(kind)

    def _list(self, kind: ListOf[Any]) -> Schema:
        schema: Schema = {"type": "array"}
        if kind.least:
            schema["minItems"] = kind.least
        if kind.most is not None:
            schema["maxItems"] = kind.most
        schema["x-kubernetes-list-type"] = "map" if kind.key else "atomic"
        if kind.key:
            schema["x-kubernetes-list-map-keys"] = [kind.key]
        doc = inspect.getdoc(kind.item.cls) if isinstance(kind.item, Document) else None
        schema["items"] = self.schema(kind.item, doc)
        return schema

    def _document(self, kind: Document[Any]) -> Schema:
        settings = [declared for declared in settings_of(kind.cls) if declared.in_resource]
        schema: Schema = {"type": "object"}
        required = [s.name for s in settings if s.required and not isinstance(s.kind, Inline)]
        if required:
            schema["required"] = required
        properties = dict(entry for declared in settings for entry in self._properties(declared))
        return {**schema, "properties": properties} if properties else schema

    def _properties(self, declared: Setting) -> Iterator[tuple[str, Schema]]:
        if isinstance(declared.kind, Inline):
            yield from self._alternatives(declared.kind)
        else:
            yield declared.name, self.field(declared)

    def _alternatives(self, kind: OneOf[Any]) -> Iterator[tuple[str, Schema]]:
        for name, alternative in kind.alternatives.items():
            yield name, self.schema(alternative, inspect.getdoc(alternative.cls))


def add_rule(schema: Schema, rule: CelRule) -> None:
    """Append a rule to the rules of a value."""
    written = {"rule": rule.expression, "message": rule.message}
    if rule.blames:
        written["fieldPath"] = f".{rule.blames}"
    schema.setdefault(RULES_KEY, []).append(written)


def arranged(schema: Schema) -> Schema:
    """Return the schema with short entries first at each level, then rules, then nested schemas."""
    last = (RULES_KEY, *_PARTS)
    ordered = {key: said for key, said in schema.items() if key not in last}
    ordered |= {key: schema[key] for key in last if key in schema}
    if "properties" in schema:
        inner = {name: arranged(part) for name, part in schema["properties"].items()}
        ordered["properties"] = inner
    if "items" in schema:
        ordered["items"] = arranged(schema["items"])
    return ordered


def fixed_fields(cls: type[Any]) -> Iterator[str]:
    """Yield the paths of a document's fixed fields, such as `epoch.interval`."""
    for declared in settings_of(cls):
        if declared.fixed:
            yield declared.name
        elif isinstance(declared.kind, Document):
            for inner in fixed_fields(declared.kind.cls):
                yield f"{declared.name}.{inner}"


def _part_at(schema: Schema, path: str) -> Schema:
    """Return the part of a document's schema at a path such as `template.env[]`."""
    for step in filter(None, path.split(".")):
        name, _, item = step.partition("[")
        schema = schema["properties"][name]
        if item:
            schema = schema["items"]
    return schema


def _has_default(declared: Setting) -> bool:
    if declared.default is MISSING or declared.default is None:
        return False
    # An empty default matters only for a fixed field: its rule compares it with the old value.
    return declared.default != () or declared.fixed


def _scalar(kind: object) -> Schema:  # noqa: PLR0911 - one line for each kind
    match kind:
        case Text() | SqlText() | SchemaText():
            return _text(kind.longest)
        case DurationKind():
            return _text(_LONGEST_DURATION)
        case Size():
            return _text(_LONGEST_SIZE)
        case Choice() if kind.refused:
            # Left to rules: an `enum` would refuse the value first, without the reason.
            return _text(_LONGEST_CHOICE)
        case Choice():
            return {"type": "string", "enum": [member.value for member in kind.members]}
        case Flag():
            return {"type": "boolean"}
        case Whole():
            return {"type": "integer", "format": "int64", **_bounds(kind.least, kind.most)}
        case Number():
            return {"type": "number", **_bounds(kind.least, kind.most)}
        case Quantity():
            return _quantity(kind)
        case JsonObject():
            return _json_object(kind)
    raise TypeError(f"no schema is known for {kind}")


def _text(longest: int) -> Schema:
    return {"type": "string", "maxLength": longest}


def _bounds(least: float, most: float) -> Schema:
    bounds = {"minimum": _json(least)}
    if most not in {2**63 - 1, math.inf}:
        bounds["maximum"] = _json(most)
    return bounds


def _quantity(kind: Quantity) -> Schema:
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": f"^{kind.pattern}$",
        "x-kubernetes-int-or-string": True,
    }


def _json_object(kind: JsonObject) -> Schema:
    schema: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if kind.texts:
        schema["required"] = list(kind.texts)
        schema["properties"] = {
            name: {"type": "string", "minLength": 1, "maxLength": kind.longest}
            for name in kind.texts
        }
    return schema


def _json(value: object) -> object:
    """Convert a whole float to an integer, which every YAML and JSON parser reads alike."""
    return int(value) if isinstance(value, float) and value.is_integer() else value

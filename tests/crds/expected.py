"""The schema that a declaration of the model asks for."""

import inspect
import math
from collections.abc import Iterator
from dataclasses import MISSING
from typing import Any

from tandem_core.model.fields.declarations import Document, Inline, OneOf, Setting, settings_of
from tandem_core.model.fields.kinds import (
    Choice,
    Flag,
    Kind,
    ListOf,
    Number,
    Size,
    Span,
    Text,
    Whole,
)
from tandem_core.model.fields.quantities import Duration
from tandem_core.model.fields.spec_kinds import (
    ANY_TEXT,
    OWNED_PREFIXES,
    OWNED_SETTINGS,
    JsonObject,
    Quantity,
    SchemaText,
    SparkConf,
    SqlText,
    TextMap,
)
from tandem_core.model.status import Status

Schema = dict[str, Any]

_DURATION = r"^(\d{1,3}d)?(\d{1,6}h)?(\d{1,7}m)?(\d{1,9}s)?(\d{1,12}ms)?$"
_SIZE = r"^\d{1,15}(k|m|g|t|Ki|Mi|Gi|Ti|kB|MB|GB|TB)?$"
_UNITS = (
    "{'': 1, 'k': 1024, 'm': 1048576, 'g': 1073741824, 't': 1099511627776, 'Ki': 1024, "
    "'Mi': 1048576, 'Gi': 1073741824, 'Ti': 1099511627776, 'kB': 1000, 'MB': 1000000, "
    "'GB': 1000000000, 'TB': 1000000000000}"
)
_DAY, _HOUR = 86_400_000, 3_600_000


def spec_schema(kind: object, doc: str | None = None, default: object = MISSING) -> Schema:
    """The schema of a value in the spec, with the rules that follow from its kind alone.

    Defaults that say nothing (empty lists and mappings) are left out.
    """
    schema = _plain(kind)
    rules = list(_rules(kind))
    if doc is not None:
        schema["description"] = doc
    if rules:
        schema["x-kubernetes-validations"] = rules
    if isinstance(kind, Document) and default not in {MISSING, None}:
        schema["default"] = {}
    elif isinstance(kind, Kind) and default not in {MISSING, None, ()}:
        schema["default"] = kind.write(default)
    return schema


def status_schema(kind: object, doc: str | None = None) -> Schema:
    """The schema of a value in the status: no rules, no defaults, for only the operator writes."""
    schema = spec_schema(kind, doc)
    for part in _schemas(schema):
        part.pop("x-kubernetes-validations", None)
        part.pop("default", None)
        part.pop("x-kubernetes-list-type", None)
    if isinstance(kind, Document) and kind.cls is Status:
        del schema["properties"]["members"]
    return schema


def _schemas(schema: Schema) -> Iterator[Schema]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from _schemas(inner)
    if "items" in schema:
        yield from _schemas(schema["items"])


def _plain(kind: object) -> Schema:  # noqa: C901, PLR0911, PLR0912 - one line for each kind
    match kind:
        case Text() | SqlText() | SchemaText():
            return {"type": "string", "maxLength": kind.longest}
        case Span():
            return {"type": "string", "maxLength": 32}
        case Size():
            return {"type": "string", "maxLength": 20}
        case Choice() if kind.refused:
            return {"type": "string", "maxLength": 20}
        case Choice():
            return {"type": "string", "enum": [member.value for member in kind.members]}
        case Flag():
            return {"type": "boolean"}
        case Whole():
            bound = {"maximum": kind.most} if kind.most < 2**63 - 1 else {}
            return {"type": "integer", "format": "int64", "minimum": kind.least, **bound}
        case Number():
            bound = {"maximum": int(kind.most)} if kind.most < math.inf else {}
            return {"type": "number", "minimum": kind.least, **bound}
        case TextMap():
            value = _plain(kind.value)
            return {"type": "object", "maxProperties": kind.most, "additionalProperties": value}
        case Quantity():
            return {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": f"^{kind.pattern}$",
                "x-kubernetes-int-or-string": True,
            }
        case JsonObject():
            return _json_object(kind)
        case ListOf():
            return _list(kind)
        case OneOf():
            return {"type": "object", "properties": dict(_alternatives(kind))}
        case Document():
            return _document(kind)
    raise TypeError(f"no schema is known for {kind}")


def _json_object(kind: JsonObject) -> Schema:
    schema: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if kind.texts:
        text = {"type": "string", "minLength": 1, "maxLength": kind.longest}
        schema["required"] = list(kind.texts)
        schema["properties"] = {name: dict(text) for name in kind.texts}
    return schema


def _list(kind: ListOf[Any]) -> Schema:
    doc = inspect.getdoc(kind.item.cls) if isinstance(kind.item, Document) else None
    bounds = {"minItems": kind.least or None, "maxItems": kind.most}
    return {
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": spec_schema(kind.item, doc),
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


def _alternatives(kind: OneOf[Any]) -> Iterator[tuple[str, Schema]]:
    for name, alternative in kind.alternatives.items():
        yield name, spec_schema(alternative, inspect.getdoc(alternative.cls))


def _document(kind: Document[Any]) -> Schema:
    settings = settings_of(kind.cls)
    schema: Schema = {"type": "object"}
    properties: Schema = {}
    for setting in settings:
        properties |= dict(_properties(setting))
    if properties:
        schema["properties"] = properties
    required = [s.name for s in settings if s.required and not isinstance(s.kind, Inline)]
    if required:
        schema["required"] = required
    return schema


def _properties(setting: Setting) -> Iterator[tuple[str, Schema]]:
    if isinstance(setting.kind, Inline):
        yield from _alternatives(setting.kind)
    else:
        yield setting.name, spec_schema(setting.kind, setting.doc, setting.default)


def _rules(kind: object) -> Iterator[dict[str, str]]:
    """The rules that follow from a kind; each says what would be right."""
    wanted = f"expected {kind.expected}" if isinstance(kind, Kind) else ""
    match kind:
        case Text() if kind.pattern != ANY_TEXT.pattern:
            yield {"rule": f"self.matches(r'^{kind.pattern}$')", "message": wanted}
        case SqlText() | SchemaText():
            yield {"rule": f"self.matches(r'^{Text().pattern}$')", "message": wanted}
        case Whole() if kind.why:
            yield {"rule": f"self <= {kind.most}", "message": wanted}
        case Span():
            yield {"rule": _span_rule(kind), "message": wanted}
        case Size():
            yield {"rule": _size_rule(kind), "message": wanted}
        case Choice() if kind.refused:
            for word, why in kind.refused.items():
                yield {"rule": f"self != '{word}'", "message": why}
            members = [member.value for member in kind.members]
            yield {"rule": f"self in {members}", "message": wanted}
        case SparkConf():
            yield from _conf_rules()
        case OneOf():
            yield _one_of(kind)
        case Document():
            inline = [s.kind for s in settings_of(kind.cls) if isinstance(s.kind, Inline)]
            for alternatives in inline:
                yield _one_of(alternatives)


def _one_of(kind: OneOf[Any]) -> dict[str, str]:
    given = ", ".join(f"has(self.{name})" for name in kind.alternatives)
    rule = f"[{given}].filter(given, given).size() == 1"
    return {"rule": rule, "message": f"expected {kind.expected}"}


def _span_rule(kind: Span) -> str:
    """Days are bounded apart from the rest: the API server's durations know none."""
    days = kind.most.milliseconds // _DAY
    least = f"duration(self) >= duration('{_go(kind.least)}') && " if kind.least.seconds else ""
    return (
        f"self != '' && self.matches(r'{_DURATION}') && "
        rf"(self.contains('d') ? int(self.find(r'^\d+')) <= {days} : "
        f"{least}duration(self) <= duration('{_go(kind.most)}'))"
    )


def _go(duration: Duration) -> str:
    hours, rest = divmod(duration.milliseconds, _HOUR)
    return f"{duration.milliseconds}ms" if rest else f"{hours}h"


def _size_rule(kind: Size) -> str:
    return (
        f"self.matches(r'{_SIZE}') && "
        rf"[int(self.find(r'^\d+')) * {_UNITS}[self.find('[A-Za-z]*$')]]"
        f".all(n, n >= {kind.least.count} && n <= {kind.most.count})"
    )


def _conf_rules() -> Iterator[dict[str, str]]:
    yield {
        "rule": "self.all(name, name.startsWith('spark.'))",
        "message": "expected names that begin with `spark.`",
    }
    for name, why in OWNED_SETTINGS.items():
        yield {"rule": f"!('{name}' in self)", "message": f"{name}: leave it out: {why}"}
    for prefix, why in OWNED_PREFIXES.items():
        rule = f"self.all(name, !name.startsWith('{prefix}'))"
        yield {"rule": rule, "message": f"{prefix}*: leave it out: {why}"}

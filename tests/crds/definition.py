"""The resource's definition as the API server reads it: defaults, schema, rules."""

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.crds.cel import CelError, compile_rule

FILE = Path(__file__).parents[2] / "crds" / "streampipelines.yaml"
DEFINITION: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
VERSION: dict[str, Any] = DEFINITION["spec"]["versions"][0]
SCHEMA: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]

_TYPES: dict[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}


class Refused(NamedTuple):
    """What the API server has against a value."""

    path: str
    message: str


def refusals(data: Any, old: Any = None) -> list[Refused]:
    """Why the API server would refuse a manifest, or a change of `old` to it.

    Rules are asked only if the schema has nothing against it. A field that the schema does not know
    counts as refused, as `kubectl apply` has it.
    """
    data = defaulted(SCHEMA, data)
    found = list(refused_by_schema(SCHEMA, data, ""))
    return found or list(_rules(SCHEMA, data, defaulted(SCHEMA, old), ""))


def defaulted(schema: dict[str, Any], data: Any) -> Any:
    """The data with defaults, and without nulls where something has to stand."""
    if isinstance(data, list) and "items" in schema:
        return [defaulted(schema["items"], item) for item in data]
    if not isinstance(data, dict) or "properties" not in schema:
        return data
    filled = {name: value for name, value in data.items() if value is not None}
    for name, inner in schema["properties"].items():
        if name not in filled and "default" in inner:
            filled[name] = deepcopy(inner["default"])
        if name in filled:
            filled[name] = defaulted(inner, filled[name])
    return filled


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part of a schema with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def refused_by_schema(schema: dict[str, Any], value: Any, path: str) -> Iterator[Refused]:
    """What the schema alone has against a value."""
    if schema.get("x-kubernetes-int-or-string"):
        yield from _against_int_or_string(schema, value, path)
        return
    expected = schema["type"]
    if not isinstance(value, _TYPES[expected]) or (
        isinstance(value, bool) and expected in {"integer", "number"}
    ):
        yield Refused(path, f"must be of type {expected}")
        return
    if "enum" in schema and value not in schema["enum"]:
        yield Refused(path, f"supported values: {', '.join(schema['enum'])}")
    for bound, size in _sizes(schema, value):
        least, most = schema.get(f"min{bound}"), schema.get(f"max{bound}")
        if least is not None and size < least:
            yield Refused(path, f"should be at least {least}")
        if most is not None and size > most:
            yield Refused(path, f"should be at most {most}")
    yield from _against_parts(schema, value, path)


def _against_int_or_string(schema: dict[str, Any], value: Any, path: str) -> Iterator[Refused]:
    if isinstance(value, bool) or not isinstance(value, int | str):
        yield Refused(path, "must be of type int or string")
    elif isinstance(value, str) and not re.search(schema["pattern"], value):
        yield Refused(path, f"should match {schema['pattern']}")


def _sizes(schema: dict[str, Any], value: Any) -> Iterator[tuple[str, Any]]:
    match schema["type"]:
        case "integer" | "number":
            yield "imum", value
        case "string":
            yield "Length", len(value)
        case "array":
            yield "Items", len(value)
        case "object":
            yield "Properties", len(value)


def _against_parts(schema: dict[str, Any], value: Any, path: str) -> Iterator[Refused]:
    for name in schema.get("required", ()):
        if name not in value:
            yield Refused(f"{path}.{name}", "Required value")
    for step, inner, part in _parts(schema, value):
        if inner is None:
            yield Refused(f"{path}{step}", "unknown field")
        else:
            yield from refused_by_schema(inner, part, f"{path}{step}")


def _parts(schema: dict[str, Any], value: Any) -> Iterator[tuple[str, dict[str, Any] | None, Any]]:
    """The parts of a value, each with its schema if it has one."""
    if schema["type"] == "array":
        for position, item in enumerate(value):
            yield f"[{position}]", schema["items"], item
    elif schema["type"] == "object":
        properties = schema.get("properties", {})
        # What metadata may hold is the API server's own.
        free = schema.get("x-kubernetes-preserve-unknown-fields") or schema == {"type": "object"}
        for name, part in value.items():
            inner = properties.get(name) or schema.get("additionalProperties")
            if inner is not None or not free:
                yield f".{name}", inner, part


def refused_by_rules(schema: dict[str, Any], value: Any, path: str) -> Iterator[Refused]:
    """What the rules alone have against a value as it is, without defaults."""
    return _rules(schema, value, None, path)


def _rules(schema: dict[str, Any], value: Any, old: Any, path: str) -> Iterator[Refused]:
    for rule in schema.get("x-kubernetes-validations", ()):
        transition = "oldSelf" in rule["rule"]
        if transition and old is None:
            continue
        scope = {"self": value, "oldSelf": old} if transition else {"self": value}
        try:
            holds = compile_rule(rule["rule"])(scope)
        except CelError as problem:
            yield Refused(path, f"{problem} evaluating rule: {rule['message']}")
            continue
        if not holds:
            yield Refused(f"{path}{rule.get('fieldPath', '')}", rule["message"])
    for step, inner, part in _parts(schema, value) if "type" in schema else ():
        if inner is not None:
            # Items of a list have no counterpart in the old one.
            known = old.get(step[1:]) if isinstance(old, dict) and step.startswith(".") else None
            yield from _rules(inner, part, known, f"{path}{step}")

"""Whether objects and clients of a released definition get along with another one.

Stored objects are validated again at every write, so whatever the old definition accepted the new
one has to accept, and what a field meant when it was left out it has to mean still. The check
refuses more than it must: rules and patterns are compared as texts.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

Schema = dict[str, Any]

_RULES = "x-kubernetes-validations"
_LEAST = ("minimum", "minLength", "minItems", "minProperties")
_MOST = ("maximum", "maxLength", "maxItems", "maxProperties")
_FREE = "x-kubernetes-preserve-unknown-fields"
# What the API server takes for granted where nothing is said.
_ASSUMED = {"x-kubernetes-list-type": "atomic"}
_KEPT = (
    "format",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
)


class Break(Enum):
    """In which way a definition is incompatible."""

    VERSION_REMOVED = "a version is no longer served or stored"
    NAME_CHANGED = "clients no longer find the resource"
    SUBRESOURCE_REMOVED = "the status is no longer written apart from the spec"
    FIELD_REMOVED = "a field is dropped from objects that have it"
    TYPE_CHANGED = "values have another type"
    VALUE_REMOVED = "an enum lost a value, or there was none before"
    BOUND_NARROWED = "a bound is tighter, or there was none before"
    PATTERN_CHANGED = "texts are matched by another pattern"
    NEWLY_REQUIRED = "a field must be given, and has no default"
    DEFAULT_CHANGED = "a field that is left out has another meaning"
    RULE_ADDED = "a rule that was not there, or reads differently"


class Incompatibility(NamedTuple):
    """One break, at the path of a field, and what changed there."""

    path: str
    kind: Break
    detail: str


def definition_breaks(old: dict[str, Any], new: dict[str, Any]) -> list[Incompatibility]:
    """What is incompatible between two CustomResourceDefinitions."""
    return list(_definition_breaks(old["spec"], new["spec"]))


def schema_breaks(old: Schema, new: Schema) -> list[Incompatibility]:
    """What is incompatible between two schemas of one version."""
    return list(_node_breaks(old, new, ""))


def _definition_breaks(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Incompatibility]:
    names = ("group", "scope", "kind", "listKind", "plural", "singular")
    before, after = {**old, **old["names"]}, {**new, **new["names"]}
    for name in names:
        if before[name] != after[name]:
            detail = f"{before[name]} -> {after[name]}"
            yield Incompatibility(f"names.{name}", Break.NAME_CHANGED, detail)
    for gone in set(old["names"].get("shortNames", ())) - set(new["names"].get("shortNames", ())):
        yield Incompatibility("names.shortNames", Break.NAME_CHANGED, f"{gone} is gone")
    versions = {version["name"]: version for version in new["versions"]}
    for version in old["versions"]:
        yield from _version_breaks(version, versions.get(version["name"]))


def _version_breaks(old: dict[str, Any], new: dict[str, Any] | None) -> Iterator[Incompatibility]:
    if new is None or (old["served"] and not new["served"]):
        yield Incompatibility(old["name"], Break.VERSION_REMOVED, "not served")
        return
    if set(old.get("subresources", ())) - set(new.get("subresources", ())):
        yield Incompatibility(old["name"], Break.SUBRESOURCE_REMOVED, "status")
    yield from schema_breaks(*(each["schema"]["openAPIV3Schema"] for each in (old, new)))


def _node_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    yield from _type_breaks(old, new, path)
    yield from _value_breaks(old, new, path)
    yield from _bound_breaks(old, new, path)
    yield from _rule_breaks(old, new, path)
    yield from _required_breaks(old, new, path)
    yield from _part_breaks(old, new, path)


def _type_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    before, after = old.get("type"), new.get("type")
    if before != after and (before, after) != ("integer", "number"):
        yield Incompatibility(path, Break.TYPE_CHANGED, f"{before} -> {after}")
    for key in _KEPT:
        was, now = (each.get(key, _ASSUMED.get(key)) for each in (old, new))
        if was != now and before == after:
            yield Incompatibility(path, Break.TYPE_CHANGED, f"{key}: {was} -> {now}")


def _value_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    if "enum" in new:
        # Without an enum before, any value may be stored.
        lost = [value for value in old.get("enum", ["..."]) if value not in new["enum"]]
        if lost:
            yield Incompatibility(path, Break.VALUE_REMOVED, f"{lost}")
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        detail = f"{old.get('pattern')} -> {new['pattern']}"
        yield Incompatibility(path, Break.PATTERN_CHANGED, detail)
    if "default" in old and ("default" not in new or old["default"] != new["default"]):
        detail = f"{old['default']} -> {new.get('default', 'none')}"
        yield Incompatibility(path, Break.DEFAULT_CHANGED, detail)


def _bound_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    for key in (*_LEAST, *_MOST):
        before, after = old.get(key), new.get(key)
        if after is None or (before is None and after == 0 and key != "minimum"):
            continue
        tighter = before is None or (after > before if key in _LEAST else after < before)
        if tighter and not _is_implied(old, key, after):
            yield Incompatibility(path, Break.BOUND_NARROWED, f"{key}: {before} -> {after}")


def _is_implied(old: Schema, key: str, bound: Any) -> bool:
    """Whether an enum allowed only texts that are no longer, or shorter, than the new bound."""
    lengths = [len(value) for value in old.get("enum", ()) if isinstance(value, str)]
    if not lengths or key not in {"minLength", "maxLength"}:
        return False
    return bool(max(lengths) <= bound if key == "maxLength" else min(lengths) >= bound)


def _rule_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    known = {rule["rule"] for rule in old.get(_RULES, ())}
    for rule in new.get(_RULES, ()):
        # A rule that blames a field which is new asks nothing of an old object.
        if rule["rule"] not in known and not _is_new(old, rule.get("fieldPath", "")):
            yield Incompatibility(path, Break.RULE_ADDED, rule["rule"])


def _is_new(old: Schema, field_path: str) -> bool:
    part: Schema | None = old
    for name in filter(None, field_path.split(".")):
        part = part.get("properties", {}).get(name) if part is not None else None
    return part is None


def _required_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    for name in new.get("required", ()):
        defaulted = "default" in new.get("properties", {}).get(name, {})
        if name not in old.get("required", ()) and not defaulted:
            yield Incompatibility(f"{path}.{name}", Break.NEWLY_REQUIRED, "")


def _part_breaks(old: Schema, new: Schema, path: str) -> Iterator[Incompatibility]:
    fields = new.get("properties", {})
    for name, part in old.get("properties", {}).items():
        if name in fields:
            yield from _node_breaks(part, fields[name], f"{path}.{name}")
        elif "additionalProperties" in new:
            yield from _node_breaks(part, new["additionalProperties"], f"{path}.{name}")
        elif not new.get(_FREE):
            yield Incompatibility(f"{path}.{name}", Break.FIELD_REMOVED, "")
    if old.get(_FREE) and not new.get(_FREE):
        yield Incompatibility(path, Break.FIELD_REMOVED, "unknown fields are dropped")
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if key in old and key in new:
            yield from _node_breaks(old[key], new[key], f"{path}{step}")
        elif key in old and not new.get(_FREE):
            yield Incompatibility(f"{path}{step}", Break.FIELD_REMOVED, "")

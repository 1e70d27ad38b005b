"""Released definitions beside the current one, and breaks that the check has to find."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.crds.compatibility import Break, Incompatibility, definition_breaks
from tests.crds.definition import DEFINITION

RELEASED = sorted((Path(__file__).parent / "released").glob("*.yaml"))
JUSTIFIED: set[Incompatibility] = set()
"""Breaks that were decided on; the changelog tells users what to do."""

SPEC = "spec.versions.0.schema.openAPIV3Schema.properties.spec"
STREAM = f"{SPEC}.properties.streams.items"
STATUS = SPEC.removesuffix("spec") + "status"
RULES = "x-kubernetes-validations"

Edit = Callable[[Any], object]


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_definition_accepts_what_released_ones_accepted(file: Path) -> None:
    released = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert set(definition_breaks(released, DEFINITION)) <= JUSTIFIED


def changed(path: str, edit: Edit, data: dict[str, Any] = DEFINITION) -> dict[str, Any]:
    """A copy of a definition after an edit of the part at a path."""
    data = deepcopy(data)
    part: Any = data
    for step in filter(None, path.split(".")):
        part = part[int(step) if step.isdigit() else step]
    edit(part)
    return data


def put(**values: object) -> Edit:
    return lambda part: part.update(values)


def drop(*names: str) -> Edit:
    return lambda part: [part.pop(name) for name in names]


def add(value: object) -> Edit:
    return lambda part: part.append(value)


RULE = {"rule": "self.pairs.count > 1", "message": "expected two"}
BREAKING: dict[str, tuple[Break, str, Edit]] = {
    "version": (Break.VERSION_REMOVED, "spec.versions.0", put(name="v1")),
    "not served": (Break.VERSION_REMOVED, "spec.versions.0", put(served=False)),
    "kind": (Break.NAME_CHANGED, "spec.names", put(kind="Pipeline")),
    "scope": (Break.NAME_CHANGED, "spec", put(scope="Cluster")),
    "short name": (Break.NAME_CHANGED, "spec.names", put(shortNames=["sp"])),
    "status": (Break.SUBRESOURCE_REMOVED, "spec.versions.0", put(subresources={})),
    "field": (Break.FIELD_REMOVED, f"{SPEC}.properties", drop("suspend")),
    "field of an item": (Break.FIELD_REMOVED, f"{STREAM}.properties", drop("onError")),
    "field of the status": (Break.FIELD_REMOVED, f"{STATUS}.properties", drop("lag")),
    "map": (
        Break.FIELD_REMOVED,
        f"{SPEC}.properties.spark.properties.conf",
        drop("additionalProperties"),
    ),
    "free fields": (
        Break.FIELD_REMOVED,
        f"{SPEC}.properties.pairs.properties.template.properties.affinity",
        drop("x-kubernetes-preserve-unknown-fields"),
    ),
    "type": (
        Break.TYPE_CHANGED,
        f"{STREAM}.properties.source.properties.generator.properties.skew",
        put(type="integer"),
    ),
    "format": (
        Break.TYPE_CHANGED,
        f"{SPEC}.properties.pairs.properties.count",
        put(format="int32"),
    ),
    "list type": (
        Break.TYPE_CHANGED,
        f"{STATUS}.properties.conditions",
        put(**{"x-kubernetes-list-type": "atomic"}),
    ),
    "enum value": (Break.VALUE_REMOVED, f"{STREAM}.properties.onError", put(enum=["deadLetter"])),
    "new enum": (Break.VALUE_REMOVED, f"{STREAM}.properties.name", put(enum=["a", "b"])),
    "minimum": (
        Break.BOUND_NARROWED,
        f"{SPEC}.properties.splits.properties.count",
        put(minimum=2),
    ),
    "maximum": (
        Break.BOUND_NARROWED,
        f"{SPEC}.properties.pairs.properties.count",
        put(maximum=256),
    ),
    "new maximum": (
        Break.BOUND_NARROWED,
        f"{STREAM}.properties.source.properties.generator.properties.rows",
        put(maximum=10),
    ),
    "new minimum of zero": (
        Break.BOUND_NARROWED,
        f"{SPEC}.properties.a",
        put(minimum=0),
    ),
    "length": (Break.BOUND_NARROWED, f"{STREAM}.properties.schema", put(maxLength=4096)),
    "new length": (Break.BOUND_NARROWED, f"{STREAM}.properties.name", put(minLength=2)),
    "items": (Break.BOUND_NARROWED, f"{SPEC}.properties.streams", put(maxItems=4)),
    "entries": (
        Break.BOUND_NARROWED,
        f"{SPEC}.properties.spark.properties.conf",
        put(maxProperties=8),
    ),
    "value of an entry": (
        Break.BOUND_NARROWED,
        f"{SPEC}.properties.spark.properties.conf.additionalProperties",
        put(maxLength=8),
    ),
    "pattern": (
        Break.PATTERN_CHANGED,
        f"{SPEC}.properties.pairs.properties.template.properties.resources.properties.requests"
        ".additionalProperties",
        put(pattern="^[0-9]+$"),
    ),
    "new pattern": (Break.PATTERN_CHANGED, f"{STREAM}.properties.name", put(pattern="^[a-z]+$")),
    "required": (Break.NEWLY_REQUIRED, f"{STREAM}.required", add("watermark")),
    "default": (
        Break.DEFAULT_CHANGED,
        f"{SPEC}.properties.epoch.properties.interval",
        put(default="1s"),
    ),
    "no default": (Break.DEFAULT_CHANGED, f"{SPEC}.properties.suspend", drop("default")),
    "rule": (Break.RULE_ADDED, f"{SPEC}.{RULES}", add(RULE)),
    "rule of an old field": (
        Break.RULE_ADDED,
        f"{SPEC}.{RULES}",
        add({**RULE, "fieldPath": ".pairs.count"}),
    ),
}


@pytest.mark.parametrize("name", BREAKING)
def test_breaking_change_is_detected(name: str) -> None:
    kind, path, edit = BREAKING[name]
    old = changed(f"{SPEC}.properties", put(a={"type": "integer"}))
    assert [found.kind for found in definition_breaks(old, changed(path, edit, old))] == [kind]


OPTIONAL = {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}
COMPATIBLE: dict[str, tuple[str, Edit]] = {
    "nothing": ("", put()),
    "description": (f"{STREAM}.properties.name", put(description="Another one.")),
    "field": (f"{SPEC}.properties", put(timeouts=OPTIONAL)),
    "required with a default": (f"{SPEC}.required", add("suspend")),
    "enum value": (f"{STREAM}.properties.onError.enum", add("skip")),
    "no enum": (f"{STREAM}.properties.onError", drop("enum")),
    "length that the enum kept": (
        f"{STREAM}.properties.onError",
        put(enum=["deadLetter", "fail"], maxLength=10),
    ),
    "minimum": (f"{SPEC}.properties.splits.properties.count", put(minimum=0)),
    "maximum": (f"{SPEC}.properties.pairs.properties.count", drop("maximum")),
    "whole to any number": (
        f"{STREAM}.properties.source.properties.generator.properties.keys",
        put(type="number"),
    ),
    "no rule": (SPEC, drop(RULES)),
    "no longer required": (f"{STREAM}.required", lambda names: names.remove("schema")),
    "rule of a new field": (f"{SPEC}.{RULES}", add({**RULE, "fieldPath": ".timeouts"})),
    "version": ("spec.versions", add({"name": "v1", "served": True, "storage": False})),
}


@pytest.mark.parametrize("name", COMPATIBLE)
def test_compatible_change_is_no_break(name: str) -> None:
    assert definition_breaks(DEFINITION, changed(*COMPATIBLE[name])) == []

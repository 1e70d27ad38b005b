"""What the API server says to manifests: examples, wrong ones, changes."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.crds.definition import SCHEMA, defaulted, refusals
from tests.manifests.orders import EVERYTHING, manifest
from tests.repeatable import thorough

from tandem_core.model.pipeline import Pipeline, parse_pipeline, pipeline_document

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
WRONG = {file.stem: file for file in (ROOT / "tests" / "model" / "wrong").glob("*.yaml")}

UNREADABLE = {"field-twice", "not-yaml"}
ANOTHER_RESOURCE = {"api-version", "kind"}
LEFT_TO_THE_OPERATOR = {
    # Nobody but the model reads a schema's DDL.
    "key-double",
    "key-map",
    "keys-of-different-types",
    "schema-repeated-column",
    "schema-reserved-column",
    "schema-syntax",
    "schema-unknown-type",
    "watermark-over-string",
    # Rules compare paths as they are written.
    "sinks-share-a-directory",
}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_are_accepted(file: Path) -> None:
    assert refusals(yaml.safe_load(file.read_text())) == []


@pytest.mark.parametrize("name", sorted(set(WRONG) - UNREADABLE - ANOTHER_RESOURCE))
def test_wrong_manifest_is_refused_unless_left_to_operator(name: str) -> None:
    found = refusals(yaml.safe_load(WRONG[name].read_text()))
    assert bool(found) is (name not in LEFT_TO_THE_OPERATOR), found


def test_exempted_manifests_exist() -> None:
    assert set(WRONG) >= UNREADABLE | ANOTHER_RESOURCE | LEFT_TO_THE_OPERATOR


def test_schema_defaults_match_model() -> None:
    pipeline = parse_pipeline(EVERYTHING)
    assert isinstance(pipeline, Pipeline)
    assert parse_pipeline(defaulted(SCHEMA, EVERYTHING)) == pipeline
    assert refusals(pipeline_document(pipeline)) == []


# --- quantities ---------------------------------------------------------------------------------

DURATIONS = st.from_regex(r"\A(\d{1,2}d)?(\d{1,4}h)?(\d{1,5}m)?(\d{1,7}s)?(\d{1,10}ms)?\Z")
SIZES = st.from_regex(r"\A\d{1,13}(k|m|g|t|Ki|Mi|Gi|Ti|kB|MB|GB|TB|K|M|B|gb)?\Z")
NEAR = st.sampled_from(["49ms", "50ms", "1h", "1h1ms", "60m", "720h", "30d", "31d", "0s", "1ms"])


def accepted(data: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the model accepts it, and whether the API server does."""
    return isinstance(parse_pipeline(data), Pipeline), not refusals(data)


@thorough(100)
@given(text=DURATIONS | NEAR)
def test_duration_validation_matches_model(text: str) -> None:
    watermark = {"column": "at", "delay": text}
    data = manifest(epoch={"interval": "50ms"})
    data["spec"]["streams"][0] |= {"schema": "user STRING, at TIMESTAMP", "watermark": watermark}
    other = manifest(epoch={"interval": text})
    for each in (data, other):
        model, server = accepted(each)
        # Days beside hours add up only in the model.
        assert server is model or ("d" in text and server)


@thorough(100)
@given(text=SIZES)
def test_byte_size_validation_matches_model(text: str) -> None:
    specs: tuple[dict[str, Any], ...] = (
        {"epoch": {"maxBytes": text}},
        {"spark": {"memory": text}},
        {"splits": {"buffer": text}},
    )
    for data in (manifest(**spec) for spec in specs):
        model, server = accepted(data)
        assert server is model


# --- changes ------------------------------------------------------------------------------------


def replaced(path: str, value: object) -> dict[str, Any]:
    data = deepcopy(EVERYTHING)
    *parents, last = path.split(".")[2:]
    part = data["spec"]
    for name in parents:
        part = part[name]
    part[last] = value
    return data


CHANGES: dict[str, Any] = {
    ".spec.streams": [EVERYTHING["spec"]["streams"][0] | {"onError": "fail"}],
    ".spec.query": {"sql": "SELECT user FROM payments"},
    ".spec.sinks": [{"name": "others", "console": {}}],
    ".spec.epoch.interval": "2s",
    ".spec.epoch.maxBytes": "1MB",
    ".spec.splits.buffer": "1Gi",
    ".spec.pairs.replicas": 1,
    ".spec.pairs.spares": 0,
    ".spec.spark.cores": 1,
    ".spec.spark.memory": "2g",
    ".spec.spark.conf": {},
}


@pytest.mark.parametrize("path", CHANGES)
def test_immutable_field_change_is_refused_by_path(path: str) -> None:
    (refused,) = refusals(replaced(path, CHANGES[path]), old=EVERYTHING)
    assert refused.path == path
    assert refused.message.startswith(f"{path[1:]} cannot change yet: ")


@pytest.mark.parametrize("path", CHANGES)
def test_refused_pipeline_may_change_immutable_fields(path: str) -> None:
    old = EVERYTHING | {"status": {"phase": "Refused"}}
    assert refusals(replaced(path, CHANGES[path]), old=old) == []


def with_condition(kind: str, reason: str) -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "reason": reason}
    condition["lastTransitionTime"] = "2024-05-01T12:00:00Z"
    return EVERYTHING | {"status": {"phase": "Running", "conditions": [condition]}}


@pytest.mark.parametrize("path", CHANGES)
def test_unapplied_spec_change_can_be_reverted(path: str) -> None:
    changed = replaced(path, CHANGES[path])
    assert refusals(changed, old=with_condition("Ready", "SpecChanged")) == []
    assert refusals(changed, old=with_condition("Ready", "Running"))
    assert refusals(changed, old=with_condition("Paired", "SpecChanged"))


def test_mutable_fields_can_change() -> None:
    assert refusals(EVERYTHING, old=EVERYTHING) == []
    assert refusals(replaced(".spec.suspend", False), old=EVERYTHING) == []
    for role in ("splits", "pairs", "merges"):
        assert refusals(replaced(f".spec.{role}.template", {}), old=EVERYTHING) == []
        assert refusals(replaced(f".spec.{role}.count", 5), old=EVERYTHING) == []
    assert refusals(replaced(".spec.change", {"maxSurge": 4}), old=EVERYTHING) == []


def test_surge_too_small_to_split_a_pair_is_refused() -> None:
    (refused,) = refusals(replaced(".spec.change", {"maxSurge": 1}), old=EVERYTHING)
    assert refused.path == ".spec.change"
    assert "at least 2" in refused.message


def test_every_field_is_declared_mutable_or_immutable() -> None:
    def fields() -> Iterator[str]:
        spec = SCHEMA["properties"]["spec"]
        for name, node in spec["properties"].items():
            if f".spec.{name}" in CHANGES or name in {"change", "suspend"}:
                continue
            yield from (f".spec.{name}.{inner}" for inner in node["properties"])

    undecided = [path for path in fields() if path not in CHANGES]
    assert undecided == [
        f".spec.{role}.{field}"
        for role in ("splits", "pairs", "merges")
        for field in ("count", "template")
    ]

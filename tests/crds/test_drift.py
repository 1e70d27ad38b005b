"""The definition, written by hand, beside the model's declarations, field by field."""

import inspect
from typing import Any

import pytest
from tests.crds.definition import DEFINITION, SCHEMA, VERSION, nodes
from tests.crds.expected import spec_schema, status_schema

from tandem_core.model.fields.declarations import Document, settings_of
from tandem_core.model.fields.kinds import Text
from tandem_core.model.kubernetes_names import GROUP, PLURAL
from tandem_core.model.pipeline import ApiVersion, Metadata, Pipeline, ResourceKind
from tandem_core.model.status import Status

RULES = "x-kubernetes-validations"


def expected_nodes() -> dict[str, dict[str, Any]]:
    (spec,) = [setting for setting in settings_of(Pipeline) if setting.name == "spec"]
    status = status_schema(Document(Status), inspect.getdoc(Status))
    return {
        **dict(nodes(spec_schema(spec.kind, spec.doc), ".spec")),
        **dict(nodes(status, ".status")),
    }


EXPECTED = expected_nodes()
FOUND = {path: node for path, node in nodes(SCHEMA) if path.startswith((".spec", ".status"))}


def shallow(node: dict[str, Any]) -> dict[str, Any]:
    """What a schema says of a value itself, without rules and without its parts."""
    return {
        name: sorted(said) if name == "required" else said
        for name, said in node.items()
        if name not in {"properties", "items", "additionalProperties", RULES}
    }


def test_the_fields_are_those_of_the_model() -> None:
    assert sorted(FOUND) == sorted(EXPECTED)


@pytest.mark.parametrize("path", EXPECTED)
def test_a_field_is_what_the_model_says(path: str) -> None:
    found, expected = shallow(FOUND[path]), shallow(EXPECTED[path])
    if path == ".status.conditions":
        expected |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    if path == ".spec.spark.conf":
        # Said although it says nothing: of a field that was missing no change is seen.
        expected["default"] = {}
    assert found == expected


@pytest.mark.parametrize("path", [path for path, node in EXPECTED.items() if RULES in node])
def test_a_field_has_the_rules_of_its_kind(path: str) -> None:
    for rule in EXPECTED[path][RULES]:
        assert rule in FOUND[path].get(RULES, [])


def test_the_resource_is_the_models() -> None:
    names = DEFINITION["spec"]["names"]
    assert DEFINITION["metadata"]["name"] == f"{PLURAL}.{GROUP}"
    assert (DEFINITION["spec"]["group"], names["plural"]) == (GROUP, PLURAL)
    assert [names["kind"]] == list(ResourceKind)
    assert [f"{GROUP}/{VERSION['name']}"] == list(ApiVersion)


def test_names_are_bounded_as_in_the_model() -> None:
    (name,) = [setting.kind for setting in settings_of(Metadata) if setting.name == "name"]
    assert isinstance(name, Text)
    rules = {rule["rule"]: rule["message"] for rule in SCHEMA[RULES]}
    assert f"self.metadata.name.size() <= {name.longest}" in rules
    pattern = f"self.metadata.name.matches(r'^{name.pattern}$')"
    assert rules[pattern] == f"metadata.name: expected {name.expected}"

"""What the API server asks of a definition before it takes it."""

import re
from typing import Any

import pytest
from tests.crds.cel import CelError, compile_rule
from tests.crds.definition import (
    DEFINITION,
    SCHEMA,
    VERSION,
    nodes,
    refused_by_rules,
    refused_by_schema,
)
from tests.manifests.api_fields import unknown_fields

NODES = dict(nodes(SCHEMA))
RULES = [
    (path, rule)
    for path, node in NODES.items()
    for rule in node.get("x-kubernetes-validations", ())
]
KEYWORDS = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}


def test_every_field_is_known_to_kubernetes() -> None:
    assert unknown_fields(DEFINITION) == []


@pytest.mark.parametrize("path", NODES)
def test_the_schema_is_structural(path: str) -> None:
    node = NODES[path]
    assert set(node) <= KEYWORDS
    assert ("type" in node) is not node.get("x-kubernetes-int-or-string", False)
    assert not ("properties" in node and "additionalProperties" in node)
    assert set(node.get("required", ())) <= set(node.get("properties", ()))
    if "default" in node:
        assert list(refused_by_schema(node, node["default"], path)) == []


@pytest.mark.parametrize("path", [path for path, node in NODES.items() if "default" in node])
def test_defaults_follow_the_rules_before_their_own_parts_have_defaults(path: str) -> None:
    assert list(refused_by_rules(NODES[path], NODES[path]["default"], path)) == []


@pytest.mark.parametrize("path", [path for path in NODES if path.startswith(".spec")])
def test_rule_costs_are_bounded(path: str) -> None:
    node = NODES[path]
    match node.get("type"):
        case "string":
            assert "enum" in node or "maxLength" in node
        case "array":
            assert "maxItems" in node
        case "object":
            assert "additionalProperties" not in node or "maxProperties" in node


@pytest.mark.parametrize(("path", "rule"), RULES)
def test_rules_compile_and_name_the_expected_value(path: str, rule: dict[str, str]) -> None:
    compile_rule(rule["rule"])
    assert set(rule) <= {"rule", "message", "fieldPath"}
    assert re.search("expected|leave it out|cannot change yet|update delivers", rule["message"])
    assert len(rule["message"]) <= 2048
    # What stands in a list has no counterpart in the list before.
    assert "oldSelf" not in rule["rule"] or "[]" not in path
    if "fieldPath" in rule:
        assert f"{path}{rule['fieldPath']}" in NODES


def test_printer_columns_refer_to_status_fields() -> None:
    columns = {each["name"]: each["jsonPath"] for each in VERSION["additionalPrinterColumns"]}
    assert list(columns) == ["Phase", "Pairs", "Epoch", "Lag", "Change", "Age"]
    for column in VERSION["additionalPrinterColumns"][:-1]:
        assert NODES[column["jsonPath"]]["type"] == column["type"]
        assert NODES[column["jsonPath"]]["description"] == column["description"]


def test_scale_subresource_sets_the_number_of_pairs() -> None:
    scale = VERSION["subresources"]["scale"]
    assert scale["specReplicasPath"] == ".spec.pairs.count"
    types = {name: NODES[path]["type"] for name, path in scale.items()}
    assert types == {
        "specReplicasPath": "integer",
        "statusReplicasPath": "integer",
        "labelSelectorPath": "string",
    }
    # The API server reads a path that is missing as an error.
    assert "default" in NODES[scale["specReplicasPath"]]
    assert NODES[".spec.pairs"]["default"] == {}


@pytest.mark.parametrize(
    "text", ["self.size(", "self.nosuch()", "self == 'a\\d'", "has(self)", "a b", "self ~ 1"]
)
def test_invalid_cel_rule_is_refused(text: str) -> None:
    with pytest.raises(CelError):
        compile_rule(text)


@pytest.mark.parametrize(
    ("text", "value", "result"),
    [
        ("self.a.size() == 0 || 1 == 1", {}, True),
        ("has(self.a) ? self.a + 'b' == 'ab' : 1 == 2", {"a": "a"}, True),
        ("self.exists(x, x * 2 >= 6) && !([1, 2][1] in self)", [1, 3], True),
        ("self.find('[a-z]*$') == '' && {'': 1}[''] == 1", "12", True),
        ("duration(self) >= duration('90s')", "1m30s", True),
    ],
)
def test_rules_follow_cel_semantics(text: str, value: Any, result: bool) -> None:
    assert compile_rule(text)({"self": value}) is result

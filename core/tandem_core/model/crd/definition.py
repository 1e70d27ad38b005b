"""The CustomResourceDefinition: names, printer columns, and the schema of the resource."""

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

from tandem_core.model.crd.schema import Schema, SchemaBuilder, add_rule, arranged, fixed_fields
from tandem_core.model.fields.declarations import Document, Setting, settings_of
from tandem_core.model.fields.rule_declarations import CelRule
from tandem_core.model.kubernetes_names import GROUP, PLURAL, VERSION
from tandem_core.model.pipeline import NAME, Pipeline, ResourceKind
from tandem_core.model.rules import RULES
from tandem_core.model.spec import Spec
from tandem_core.model.states import SPEC_CHANGED, ConditionType, Phase
from tandem_core.model.status import Status


class PrinterColumn(NamedTuple):
    """A column of `kubectl get`; its type and description are the field's."""

    name: str
    path: str


_COLUMNS = (
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Pairs", ".status.pairsReady"),
    PrinterColumn("Epoch", ".status.epoch.delivered"),
    PrinterColumn("Lag", ".status.lag.seconds"),
    PrinterColumn("Change", ".status.change.stage"),
)
_SCALE = {
    "specReplicasPath": ".spec.pairs.count",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
"""`kubectl scale` and autoscalers set the number of pairs."""
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition as plain data."""
    schema = arranged(_resource_schema())
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": _names(),
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}, "scale": _SCALE},
                    "additionalPrinterColumns": [*_columns(schema), _AGE],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _names() -> dict[str, Any]:
    kind = ResourceKind.STREAM_PIPELINE.value
    return {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": PLURAL,
        "singular": kind.lower(),
        "shortNames": ["stp"],
        "categories": ["tandem"],
    }


def _columns(schema: Schema) -> Iterator[dict[str, str]]:
    for column in _COLUMNS:
        shown = schema
        for name in column.path[1:].split("."):
            shown = shown["properties"][name]
        yield {
            "name": column.name,
            "type": shown["type"],
            "jsonPath": column.path,
            "description": shown["description"],
        }


def _resource_schema() -> Schema:
    fields = {declared.name: declared for declared in settings_of(Pipeline)}
    schema: Schema = {
        "description": inspect.getdoc(Pipeline),
        "type": "object",
        "required": [fields["spec"].name],
    }
    # Rules that read the name or the status have to be at the root: only there `self` has both.
    for rule in (*_name_rules(), *_fixed_rules()):
        add_rule(schema, rule)
    status = SchemaBuilder({}, judged=False).schema(Document(Status), inspect.getdoc(Status))
    schema["properties"] = {
        **{name: _checked_by_kubernetes(fields[name]) for name in ("apiVersion", "kind")},
        "metadata": {"type": "object"},
        "spec": SchemaBuilder(RULES).field(fields["spec"]),
        "status": status,
    }
    return schema


def _checked_by_kubernetes(declared: Setting) -> Schema:
    return {"description": declared.doc, "type": "string"}


def _name_rules() -> Iterator[CelRule]:
    yield CelRule(
        f"self.metadata.name.size() <= {NAME.longest}",
        f"metadata.name: expected at most {NAME.longest} characters; pods and services are named "
        "after it",
    )
    yield CelRule(
        f"self.metadata.name.matches(r'^{NAME.pattern}$')",
        f"metadata.name: expected {NAME.expected}",
    )


def _fixed_rules() -> Iterator[CelRule]:
    """Yield one rule per fixed field: it may change only while nothing runs, or to be reverted."""
    nothing_runs = f"(has(oldSelf.status.phase) && oldSelf.status.phase == '{Phase.REFUSED}')"
    came_late = (
        "(has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(said, "
        f"said.type == '{ConditionType.READY}' && said.reason == '{SPEC_CHANGED}'))"
    )
    may_change = f"(has(oldSelf.status) && ({nothing_runs} || {came_late}))"
    for path in fixed_fields(Spec):
        yield CelRule(
            f"self.spec.{path} == oldSelf.spec.{path} || {may_change}",
            f"spec.{path} cannot change yet: apply a pipeline of another name with the new value, "
            "then delete this one",
            blames=f"spec.{path}",
        )

"""Converts plain parsed data to a typed pipeline or status, or to all problems; and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar, cast

from tandem_core.model.fields.declarations import Document, RuleBook, document, setting
from tandem_core.model.fields.defaults import only_fixed, without_defaults
from tandem_core.model.fields.kinds import Choice, Text, Unreadable, Whole
from tandem_core.model.fields.problems import Problem
from tandem_core.model.kubernetes_names import GROUP, MOST_NAME, VERSION
from tandem_core.model.rules import RULES
from tandem_core.model.spec import Spec
from tandem_core.model.status import Status

T = TypeVar("T")

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

# Kubernetes allows 63 characters, and requires a letter at the start of a Service's name.
NAME = Text(
    "a name of small letters, digits and dashes that begins with a letter (RFC 1035; pods and "
    "services are named after it)",
    r"[a-z]([-a-z0-9]*[a-z0-9])?",
    MOST_NAME,
)
"""The valid names of a pipeline."""


class ApiVersion(StrEnum):
    """The version of the resource."""

    V1ALPHA1 = f"{GROUP}/{VERSION}"


class ResourceKind(StrEnum):
    """The kind of the resource."""

    STREAM_PIPELINE = "StreamPipeline"


# All other fields of Kubernetes' object metadata: accepted and ignored.
@document(
    ignored=(
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "labels",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
    )
)
class Metadata:
    """The metadata of the resource."""

    name: str = setting(NAME, doc="Name of the pipeline.", fixed=True)
    namespace: str = setting(
        Text("a name of small letters, digits and dashes (RFC 1123)", _LABEL, 63),
        default="default",
        doc="Namespace; ignored on one machine.",
        fixed=True,
    )
    uid: str | None = setting(Text(), default=None, doc="Set by the API server.")
    generation: int = setting(Whole(0), default=0, doc="Incremented by the API server.")


@document(ignored=("status",))
class Pipeline:
    """A `StreamPipeline`: an exactly-once streaming pipeline on Spark."""

    api_version: ApiVersion = setting(
        Choice(ApiVersion), doc="Version of the resource.", fixed=True
    )
    kind: ResourceKind = setting(Choice(ResourceKind), doc="Kind of the resource.", fixed=True)
    metadata: Metadata = setting(Document(Metadata), doc="Standard metadata of the object.")
    spec: Spec = setting(Document(Spec), doc="Desired state of the pipeline.")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The problems of an invalid document, at least one."""

    problems: tuple[Problem, ...]


def parse_pipeline(data: object) -> Pipeline | Refusal:
    """Convert a parsed manifest or resource to a pipeline; ignores its status.

    Never raises: any data give a pipeline, or a refusal with all problems.
    """
    return _parse(Document(Pipeline), data)


def parse_status(data: object) -> Status | Refusal:
    """Convert the plain data that `status_document` returns to a status."""
    return _parse(Document(Status), data)


def status_in(resource: Mapping[str, Any]) -> Status:
    """Return the status in a resource; an empty one if it is missing or unreadable."""
    parsed = parse_status(resource.get("status") or {})
    return Status() if isinstance(parsed, Refusal) else parsed


def pipeline_document(pipeline: Pipeline) -> dict[str, object]:
    """Write a pipeline as plain data, defaults included; parsing it gives the same pipeline."""
    return cast("dict[str, object]", Document(Pipeline).write(pipeline))


def sparse_document(pipeline: Pipeline) -> dict[str, object]:
    """Write a pipeline as plain data without defaults; parsing it gives the same pipeline."""
    sparse = without_defaults(Document(Pipeline), pipeline_document(pipeline))
    return cast("dict[str, object]", sparse)


def fixed_part(pipeline: Pipeline) -> Pipeline:
    """Reset every field that may change while the pipeline runs to its default."""
    return only_fixed(pipeline)


def status_document(status: Status) -> dict[str, object]:
    """Write a status as plain data."""
    return cast("dict[str, object]", Document(Status).write(status))


def _parse(kind: Document[T], data: object) -> T | Refusal:
    reading = RuleBook(RULES)
    try:
        found = kind.read(data, (), reading)
    except Unreadable:
        return Refusal(tuple(reading.problems))
    return Refusal(tuple(reading.problems)) if reading.problems else found

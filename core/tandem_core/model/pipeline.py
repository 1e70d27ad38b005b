"""The edge: plain parsed data in, a typed pipeline or all its problems out; and back."""

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

# Kubernetes takes 63 characters, and a letter at the beginning of a Service's name.
NAME = Text(
    "a name of small letters, digits and dashes that begins with a letter (RFC 1035; pods and "
    "services are named after it)",
    r"[a-z]([-a-z0-9]*[a-z0-9])?",
    MOST_NAME,
)
"""What a pipeline may be called."""


class ApiVersion(StrEnum):
    """The version of the resource."""

    V1ALPHA1 = f"{GROUP}/{VERSION}"


class ResourceKind(StrEnum):
    """The kind of the resource."""

    STREAM_PIPELINE = "StreamPipeline"


# What else Kubernetes keeps in the metadata of any object: accepted, none of our business.
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
    """What Kubernetes knows of the pipeline."""

    name: str = setting(NAME, doc="Name of the pipeline.", fixed=True)
    namespace: str = setting(
        Text("a name of small letters, digits and dashes (RFC 1123)", _LABEL, 63),
        default="default",
        doc="Namespace; of no meaning on a laptop.",
        fixed=True,
    )
    uid: str | None = setting(Text(), default=None, doc="Given by the API server.")
    generation: int = setting(Whole(0), default=0, doc="Counted by the API server.")


@document(ignored=("status",))
class Pipeline:
    """A `StreamPipeline`."""

    api_version: ApiVersion = setting(
        Choice(ApiVersion), doc="Version of the resource.", fixed=True
    )
    kind: ResourceKind = setting(Choice(ResourceKind), doc="Kind of the resource.", fixed=True)
    metadata: Metadata = setting(Document(Metadata), doc="Name and what Kubernetes adds.")
    spec: Spec = setting(Document(Spec), doc="What the pipeline should be.")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a document is not what it should be: one problem or more."""

    problems: tuple[Problem, ...]


def parse_pipeline(data: object) -> Pipeline | Refusal:
    """Make a pipeline of a parsed manifest or resource; its status is not looked at.

    Never raises: whatever the data are, they are a pipeline or a refusal with all problems.
    """
    return _parse(Document(Pipeline), data)


def parse_status(data: object) -> Status | Refusal:
    """Make a status of the plain data that `status_document` gives."""
    return _parse(Document(Status), data)


def status_in(resource: Mapping[str, Any]) -> Status:
    """The status that stands in a resource; an empty one if there is none that can be read."""
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
    """The pipeline with every field that may change while it runs at its default."""
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

"""The pods of a pipeline: how many there are of each role, and what users may add to them.

Values of Kubernetes' own types are kept as given; the API server validates them when pods are
created. What Tandem itself sets in a pod cannot be replaced: see `tandem_core.model.pod_rules`.
"""

from tandem_core.model.fields.declarations import Document, document, setting
from tandem_core.model.fields.kinds import ListOf, Size, Text, Whole
from tandem_core.model.fields.quantities import ByteSize
from tandem_core.model.fields.spec_kinds import Json, JsonObject, Quantity, TextMap

_LABEL_VALUE = Text("a text of at most 63 characters", r"(?s).*", longest=63)
_NAME = Text("the name of an object in Kubernetes", longest=253)
_QUANTITIES = TextMap("a mapping from resources to amounts", Quantity(), most=16)
_MOST = 32
_MI = 2**20


@document
class Resources:
    """Resource requests and limits; each overrides Tandem's of the same name."""

    requests: tuple[tuple[str, str], ...] = setting(
        _QUANTITIES, default=(), doc="Resource requests, as in a container."
    )
    limits: tuple[tuple[str, str], ...] = setting(
        _QUANTITIES, default=(), doc="Resource limits, as in a container."
    )


@document
class PodTemplate:
    """Additions to the pods of one role."""

    labels: tuple[tuple[str, str], ...] = setting(
        TextMap("a mapping from labels to texts", _LABEL_VALUE),
        default=(),
        doc="Additional labels.",
    )
    annotations: tuple[tuple[str, str], ...] = setting(
        TextMap("a mapping from annotations to texts"), default=(), doc="Additional annotations."
    )
    node_selector: tuple[tuple[str, str], ...] = setting(
        TextMap("a mapping from labels of nodes to texts", _LABEL_VALUE),
        default=(),
        doc="Labels that a node must have.",
    )
    tolerations: tuple[Json, ...] = setting(
        ListOf(JsonObject("a toleration"), most=_MOST),
        default=(),
        doc="Taints of nodes that the pods tolerate, as in a pod.",
    )
    affinity: Json | None = setting(
        JsonObject("an affinity"), default=None, doc="Node and pod affinity, as in a pod."
    )
    env: tuple[Json, ...] = setting(
        ListOf(JsonObject("a variable with its name", texts=("name",)), most=_MOST),
        default=(),
        doc="Additional environment variables, as in a container.",
    )
    env_from: tuple[Json, ...] = setting(
        ListOf(JsonObject("a source of variables"), most=_MOST),
        default=(),
        doc="Additional environment from ConfigMaps or Secrets, as in a container.",
    )
    volumes: tuple[Json, ...] = setting(
        ListOf(JsonObject("a volume with its name", texts=("name",)), most=_MOST),
        default=(),
        doc="Additional volumes, as in a pod.",
    )
    volume_mounts: tuple[Json, ...] = setting(
        ListOf(
            JsonObject("a mount with name and mountPath", texts=("name", "mountPath")), most=_MOST
        ),
        default=(),
        doc="Mounts of these volumes, as in a container.",
    )
    resources: Resources | None = setting(
        Document(Resources), default=None, doc="Resource requests and limits."
    )
    priority_class_name: str | None = setting(_NAME, default=None, doc="PriorityClass of the pods.")
    image_pull_secrets: tuple[Json, ...] = setting(
        ListOf(JsonObject("the name of a Secret, as `name: x`", texts=("name",)), most=_MOST),
        default=(),
        doc="Secrets for pulling images.",
    )
    runtime_class_name: str | None = setting(_NAME, default=None, doc="RuntimeClass of the pods.")


_TEMPLATE = Document(PodTemplate)
_TEMPLATE_DOC = "Additions to the pods; ignored on one machine."


@document
class Splits:
    """The pods that read the sources."""

    count: int = setting(
        Whole(1, 256),
        default=2,
        doc="Number of splits. With one, there is no second copy of the rows that it has read.",
    )
    buffer: ByteSize = setting(
        Size(ByteSize(16 * _MI), ByteSize(2**40), "two chunks of the largest size"),
        default=ByteSize(256 * _MI),
        doc="Bytes that a lane keeps for replicas and sinks that are behind; a split whose lane is "
        "full stops reading.",
        fixed=True,
    )
    template: PodTemplate | None = setting(_TEMPLATE, default=None, doc=_TEMPLATE_DOC)


@document
class Pairs:
    """The pairs of Spark drivers that own the keys."""

    count: int = setting(
        Whole(1, 1024, "what is written down of more may not fit into one object of Kubernetes"),
        default=2,
        doc="Number of pairs.",
    )
    replicas: int = setting(
        Whole(1, 2),
        default=2,
        doc="Drivers in a pair; 1 means no twin: cheaper, and slower to recover.",
        fixed=True,
    )
    spares: int = setting(
        Whole(0, 64),
        default=0,
        doc="Warm drivers kept ready to replace a lost replica quickly.",
        fixed=True,
    )
    template: PodTemplate | None = setting(_TEMPLATE, default=None, doc=_TEMPLATE_DOC)


@document
class Merges:
    """The pods that deliver results."""

    count: int = setting(
        Whole(1, 64),
        default=1,
        doc="Number of merge slots, which share the pairs; each has a standby.",
    )
    template: PodTemplate | None = setting(_TEMPLATE, default=None, doc=_TEMPLATE_DOC)

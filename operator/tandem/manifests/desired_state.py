"""The desired state of a pipeline, and the metadata that all its objects share."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tandem_core.model.kubernetes_names import (
    APPLICATION,
    APPLIED_ANNOTATION,
    FIELD_MANAGER,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    PIPELINE_LABEL,
)
from tandem_core.model.pipeline import Pipeline


def canonical(data: object) -> str:
    """Write plain data as JSON with sorted names and without blanks."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(data: object) -> str:
    """Return a short digest of plain data, in hex."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:16]


Manifest = dict[str, Any]
"""A Kubernetes object as plain data."""


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a pipeline's pods by role; spares run the replica's image.

    They are chosen when the pipeline is created and stored beside its intent, so that an operator
    upgrade does not roll the pods.
    """

    split: str
    replica: str
    merge: str

    def text(self) -> str:
        """Return the images as `parse_images` reads them."""
        return canonical(asdict(self))


def parse_images(text: str) -> Images:
    """Parse what `Images.text` wrote.

    Raises:
        ValueError: the text does not have the images of a pipeline.
    """
    try:
        return Images(**json.loads(text))
    except TypeError as problem:
        raise ValueError(f"not the images of a pipeline: {text[:200]}") from problem


@dataclass(frozen=True, slots=True)
class PairWorkload:
    """A pair that has pods. Its objects keep their names as long as the pair lives."""

    name: str
    birth: int
    """The generation that it was born in, after which its objects are named."""
    shadow: bool = False
    """Whether it is still built: it owns no keys, and its parents have its state."""


@dataclass(frozen=True, slots=True)
class Workloads:
    """The pods that a pipeline has: they change while it runs, unlike its fixed fields."""

    pairs: tuple[PairWorkload, ...]
    splits: int
    slots: tuple[int, ...]
    """The numbers of the merge slots that have pods."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The desired state of one pipeline on the cluster."""

    pipeline: Pipeline
    uid: str
    """Of the resource: objects of an earlier pipeline with the same name have another uid."""
    images: Images
    workloads: Workloads
    operator_namespace: str
    """The operator's namespace, from which the NetworkPolicy admits its calls."""
    refused: bool = False
    """Whether its drivers refuse to start and have computed nothing that could be lost."""

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.pipeline.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace of the pipeline and of all its objects."""
        return self.pipeline.metadata.namespace


def labels_of(order: DesiredState) -> dict[str, str]:
    """Return the labels of all objects of a pipeline."""
    return {
        NAME_LABEL: APPLICATION,
        INSTANCE_LABEL: order.name,
        MANAGED_BY_LABEL: FIELD_MANAGER,
        PIPELINE_LABEL: order.name,
    }


def metadata_of(
    order: DesiredState, name: str, labels: Mapping[str, str] | None = None
) -> Manifest:
    """Return the metadata of an object, whose owner reference deletes it with the pipeline."""
    pipeline = order.pipeline
    return {
        "name": name,
        "namespace": order.namespace,
        "labels": {**labels_of(order), **(labels or {})},
        "ownerReferences": [
            {
                "apiVersion": str(pipeline.api_version),
                "kind": str(pipeline.kind),
                "name": order.name,
                "uid": order.uid,
                "controller": True,
            }
        ],
    }


def applied(manifest: Manifest, ordered: object = None) -> Manifest:
    """Annotate a manifest with the digest by which the operator detects that it must be applied.

    It is the digest of the manifest unless `ordered` is given. Workloads pass what was ordered: a
    later operator may write the same order as a different manifest, which must not roll pods.
    """
    annotations = {APPLIED_ANNOTATION: digest(manifest if ordered is None else ordered)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}

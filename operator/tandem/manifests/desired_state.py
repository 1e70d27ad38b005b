"""The desired state of a pipeline, and what all objects made for it have in common."""

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
    """Write plain data as JSON, names sorted, without blanks."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(data: object) -> str:
    """A short digest of plain data, in hex."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:16]


Manifest = dict[str, Any]
"""A Kubernetes object as plain data."""


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a pipeline's pods by role; spares are replicas that wait.

    They are chosen when the pipeline is made and kept beside its intent: an operator that was
    upgraded since finds them there and does not roll the pods.
    """

    split: str
    replica: str
    merge: str

    def text(self) -> str:
        """The images as `parse_images` reads them."""
        return canonical(asdict(self))


def parse_images(text: str) -> Images:
    """Read what `Images.text` wrote.

    Raises:
        ValueError: the text is something else.
    """
    try:
        return Images(**json.loads(text))
    except TypeError as problem:
        raise ValueError(f"not the images of a pipeline: {text[:200]}") from problem


@dataclass(frozen=True, slots=True)
class DesiredState:
    """One pipeline as it should stand on the cluster."""

    pipeline: Pipeline
    uid: str
    """Of the resource: objects of a pipeline that had the same name before are not ours."""
    images: Images
    generation: int
    pairs: tuple[str, ...]
    """The names of this generation's pairs."""
    operator_namespace: str
    """Where the operator runs; from there its calls come through the NetworkPolicy."""
    refused: bool = False
    """Whether its drivers cannot begin, and nothing was computed that could be lost with them."""

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.pipeline.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace of the pipeline and of everything made for it."""
        return self.pipeline.metadata.namespace


def labels_of(order: DesiredState) -> dict[str, str]:
    """The labels of everything that belongs to a pipeline."""
    return {
        NAME_LABEL: APPLICATION,
        INSTANCE_LABEL: order.name,
        MANAGED_BY_LABEL: FIELD_MANAGER,
        PIPELINE_LABEL: order.name,
    }


def metadata_of(
    order: DesiredState, name: str, labels: Mapping[str, str] | None = None
) -> Manifest:
    """The metadata of an object; it goes away with the pipeline, also without an operator."""
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
    """The manifest with a digest by which the operator sees whether it must be applied anew.

    It is a digest of the manifest unless `ordered` is given. Workloads give what was ordered: a
    later operator may write the same order down in other words, and must not roll pods for that.
    """
    annotations = {APPLIED_ANNOTATION: digest(manifest if ordered is None else ordered)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}

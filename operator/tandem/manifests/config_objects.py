"""Builds the objects that pods read or write: manifest, token, intent, register."""

import base64
from collections.abc import Mapping

from tandem.manifests.desired_state import (
    DesiredState,
    Manifest,
    applied,
    canonical,
    digest,
    metadata_of,
)
from tandem_core.model.kubernetes_names import (
    IMAGES_ANNOTATION,
    INTENT_KEY,
    PIPELINE_KEY,
    SPEC_ANNOTATION,
    TOKEN_KEY,
    intent_name,
    register_name,
    spec_name,
    token_name,
)
from tandem_core.model.pipeline import fixed_part, sparse_document


def spec_of(order: DesiredState) -> Manifest:
    """Return the ConfigMap with the manifest that the pods run.

    It has only fixed fields, and no defaults: those are the image's.
    """
    return applied(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata_of(order, spec_name(order.name, spec_digest(order))),
            "immutable": True,
            "data": {PIPELINE_KEY: canonical(_pipeline_file(order))},
        }
    )


def spec_digest(order: DesiredState) -> str:
    """Return the digest of the manifest that the pods run."""
    return digest(_pipeline_file(order))


def _pipeline_file(order: DesiredState) -> Manifest:
    return {"manifest": sparse_document(fixed_part(order.pipeline)), "uid": order.uid}


def token_of(order: DesiredState, token: str) -> Manifest:
    """Return the Secret, which is created once, with a token that does not change."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata_of(order, token_name(order.name)),
        "type": "Opaque",
        "immutable": True,
        "data": {TOKEN_KEY: _base64(token.encode())},
    }


def intent_of(order: DesiredState, intent: str, functions: Mapping[str, bytes]) -> Manifest:
    """Return the ConfigMap with an intent and its routing functions.

    Later intents replace it by compare-and-swap.
    """
    metadata = metadata_of(order, intent_name(order.name))
    annotations = {IMAGES_ANNOTATION: order.images.text(), SPEC_ANNOTATION: spec_digest(order)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": annotations},
        "data": {INTENT_KEY: intent},
        "binaryData": {name: _base64(form) for name, form in functions.items()},
    }


def register_of(order: DesiredState) -> Manifest:
    """Return the Lease, which is created once and empty: only splits write to it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata_of(order, register_name(order.name)),
        "spec": {},
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

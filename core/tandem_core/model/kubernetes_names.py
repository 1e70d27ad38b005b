"""Names on a cluster: objects, labels, annotations, ports, paths and environment of a pipeline.

The operator creates objects under these names, and the pods find them by the same names. Every
name fits Kubernetes' 63 characters because a pipeline's has at most `MOST_NAME`.
"""

from typing import Final

from tandem_core.model.states import Role

GROUP: Final = "tandem.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "streampipelines"

FIELD_MANAGER: Final = "tandem-operator"
MOST_NAME: Final = 40

FLIGHT_PORT: Final = 7070
FLIGHT_PORT_NAME: Final = "flight"
HTTP_PORT: Final = 7080
HTTP_PORT_NAME: Final = "http"

NAME_LABEL: Final = "app.kubernetes.io/name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
APPLICATION: Final = "tandem"
OPERATOR: Final = "operator"
"""The component label of the operator's own pods."""

PIPELINE_LABEL: Final = f"{GROUP}/pipeline"
KIND_LABEL: Final = f"{GROUP}/kind"
PAIR_LABEL: Final = f"{GROUP}/pair"
GENERATION_LABEL: Final = f"{GROUP}/generation"
SLOT_LABEL: Final = f"{GROUP}/slot"
ROLE_LABEL: Final = f"{GROUP}/role"

PLACE_ANNOTATION: Final = f"{GROUP}/place"
IMAGES_ANNOTATION: Final = f"{GROUP}/images"
SPEC_ANNOTATION: Final = f"{GROUP}/spec"
"""The digest of the manifest that a pipeline started with."""
ENDING_ANNOTATION: Final = f"{GROUP}/ending"
"""Marks the intent of a pipeline whose objects are deleted so that it starts over."""
APPLIED_ANNOTATION: Final = f"{GROUP}/applied"
REQUEST_ANNOTATION: Final = f"{GROUP}/request"
"""On the resource: a change of keys that a user asks for, as JSON."""

PIPELINE_KEY: Final = "pipeline.json"
TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key, not a secret
INTENT_KEY: Final = "intent"

# Paths in a pod, relative to its root.
TANDEM_DIRECTORY: Final = "tandem"
PIPELINE_MOUNT: Final = f"{TANDEM_DIRECTORY}/pipeline"
SECRET_MOUNT: Final = f"{TANDEM_DIRECTORY}/secret"
VOLUME_MOUNT: Final = f"{TANDEM_DIRECTORY}/volume"
TEMPORARY_MOUNT: Final = "tmp"
PIPELINE_FILE: Final = f"{PIPELINE_MOUNT}/{PIPELINE_KEY}"
TOKEN_FILE: Final = f"{SECRET_MOUNT}/{TOKEN_KEY}"
TERMINATION_FILE: Final = "dev/termination-log"

VOLUME_PREFIX: Final = "tandem-"
"""Prefix of the names of the pod volumes that Tandem mounts."""

ENVIRONMENT_PREFIX: Final = "TANDEM_"
POD_NAME_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}POD_NAME"
POD_UID_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}POD_UID"
POD_IP_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}POD_IP"
NODE_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}NODE"
NAMESPACE_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}NAMESPACE"


def spec_name(pipeline: str, digest: str) -> str:
    """Return the name of the immutable ConfigMap with the manifest of this hex digest."""
    return f"{pipeline}-spec-{digest[:8]}"


def token_name(pipeline: str) -> str:
    """Return the name of the Secret with the token of all calls between the pipeline's pods."""
    return f"{pipeline}-token"


def intent_name(pipeline: str) -> str:
    """Return the name of the ConfigMap with the intent."""
    return f"{pipeline}-intent"


def register_name(pipeline: str) -> str:
    """Return the name of the Lease that elects the lead among the splits."""
    return f"{pipeline}-register"


def split_account(pipeline: str) -> str:
    """Return the name of the splits' ServiceAccount, Role and RoleBinding."""
    return f"{pipeline}-split"


def splits_service(pipeline: str) -> str:
    """Return the name of the headless Service of the splits."""
    return f"{pipeline}-splits"


def splits_name(pipeline: str) -> str:
    """Return the name of the splits' Deployment and its PodDisruptionBudget."""
    return f"{pipeline}-splits"


def merge_name(pipeline: str, slot: int) -> str:
    """Return the name of a merge slot's Deployment and its PodDisruptionBudget."""
    return f"{pipeline}-merge-{slot}"


def pair_name(pipeline: str, generation: int, pair: str) -> str:
    """Return the name of a pair's ReplicaSet and PodDisruptionBudget, by its first generation."""
    return f"{pipeline}-g{generation}-{pair}"


def spares_name(pipeline: str) -> str:
    """Return the name of the warm spares' ReplicaSet."""
    return f"{pipeline}-spares"


def primary_selector(pipeline: str) -> str:
    """Return the label selector of the primaries of the current pairs."""
    return f"{PIPELINE_LABEL}={pipeline},{ROLE_LABEL}={Role.PRIMARY}"


def policy_name(pipeline: str) -> str:
    """Return the name of the NetworkPolicy of the pipeline's pods."""
    return pipeline

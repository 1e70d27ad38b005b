"""The register as a Lease of the API server: compare and set by its version.

The operator creates the Lease; it is never renewed. Its annotation holds lead, buddy and term; the
holder is informational. A split changes it only while its own pod exists: a pod that is gone for
good must not write any more, and its token stays valid for a while after it.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tandem_core.contract.records import decode_json
from tandem_core.model.kubernetes_names import PIPELINE_LABEL, PLACE_ANNOTATION, register_name
from tandem_runtime.environment.interface import RegisterSilent, VolumeRevoked
from tandem_runtime.environment.kubernetes_api import (
    Access,
    ApiRefused,
    ApiSilent,
    Object,
    Session,
    namespace_path,
)
from tandem_runtime.environment.pod_directory import pod_of
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.protocol.election.register import swap
from tandem_runtime.protocol.types import NOBODY, RegisterState


class LeaseRegister:
    """The register of a pipeline, as one of its pods uses it. Used by one thread."""

    def __init__(self, access: Access, pod: PodIdentity, pipeline: str) -> None:
        self._session = Session(access)
        leases = namespace_path("coordination.k8s.io/v1", pod.namespace, "leases")
        self._lease = f"{leases}/{register_name(pipeline)}"
        self._own_pod = f"{namespace_path('v1', pod.namespace, 'pods')}/{pod.name}"
        self._uid = pod.uid
        self._pipeline = pipeline

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def read_register(self) -> RegisterState:
        """The current value; see `Register`."""
        with _silent_in_trouble():
            return place_of(self._session.get(self._lease))

    def swap_register(self, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
        """Compare and set; see `Register`."""
        with _silent_in_trouble():
            lease = self._session.get(self._lease)
            swapped, wanted = swap(place_of(lease), expected, place)
            if not swapped:
                return False, wanted
            self._check_own_pod()
            try:
                self._session.put(self._lease, with_place(lease, wanted))
            except ApiRefused as refusal:
                if refusal.status != http.client.CONFLICT:
                    raise
                return False, place_of(self._session.get(self._lease))
            return True, wanted

    def _check_own_pod(self) -> None:
        try:
            found = self._session.get(self._own_pod)
        except ApiRefused as refusal:
            if refusal.status != http.client.NOT_FOUND:
                raise
            raise VolumeRevoked("this pod was deleted") from refusal
        pod = pod_of(found)
        labels = found["metadata"].get("labels", {})
        if pod is None or pod.uid != self._uid or labels.get(PIPELINE_LABEL) != self._pipeline:
            raise VolumeRevoked("this pod no longer belongs to the pipeline")


@contextmanager
def _silent_in_trouble() -> Iterator[None]:
    """Turn every fault of the API server or of the Lease into `RegisterSilent`."""
    try:
        yield
    except (ApiSilent, ApiRefused, KeyError, TypeError, ValueError) as problem:
        raise RegisterSilent(f"{type(problem).__name__}: {problem}") from problem


def place_of(lease: Object) -> RegisterState:
    """The register's value in a Lease; `NOBODY` if it has none yet."""
    said = lease["metadata"].get("annotations", {}).get(PLACE_ANNOTATION)
    if said is None:
        return NOBODY
    return decode_json(said, RegisterState)


def with_place(lease: Object, place: RegisterState) -> Object:
    """The Lease with this value, at the same version."""
    metadata = lease["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        PLACE_ANNOTATION: msgspec.json.encode(place).decode(),
    }
    return {
        **lease,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**lease.get("spec", {}), "holderIdentity": place.lead},
    }

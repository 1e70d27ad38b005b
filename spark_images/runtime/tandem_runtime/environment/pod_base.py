"""The environment that all pods of a pipeline have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from tandem_core.contract.intent import Intent
from tandem_core.contract.records import Record, decode, encode
from tandem_core.contract.reports import Card
from tandem_core.contract.volume_ids import pod_volume
from tandem_runtime.environment.pipeline_document import read_document
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.environment.volume_tracker import VolumeTracker
from tandem_runtime.protocol.types import Member

Address = tuple[str, int]

AROUND = "around"
"""The action with which splits report their environment."""


FUNCTION = "function"
"""The action with which splits tell a routing function; the question is its digest."""


class PeersAnswer(Record):
    """The answer to `AROUND`."""

    in_touch: bool
    """Whether the answering split has recently had an answer of the API server."""
    splits: tuple[Member, ...]
    addresses: dict[str, Address]
    """By pod."""
    intent: Intent | None = None
    """Only if it is newer than the version that the question names."""

    def to_bytes(self) -> bytes:
        """Encode for sending."""
        return encode(self)

    @classmethod
    def from_bytes(cls, form: bytes) -> PeersAnswer:
        """Read what `to_bytes` wrote.

        Raises:
            Undecodable: it is something else.
        """
        return decode(form, cls)


class PodEnvironment(ABC):
    """Mounts, identity, and which volumes the pods are on.

    Only a pod itself knows its volume. Peers learn it from its messages, and from its refusal of
    streams for an older volume.
    """

    silence = 2000

    def __init__(self, pod: PodIdentity) -> None:
        self.pod = pod
        document = read_document(pod.document)
        self.pipeline = document.pipeline
        self.uid: str = document.beside["uid"]
        self.token = pod.token.read_text().strip()
        self.node = pod.node
        self.newest = VolumeTracker()

    def met(self, volume: str) -> None:
        """Record the volume that a pod reports; its older ones are gone."""
        self.newest.heard(volume)

    def address_of(self, volume: str) -> Address | None:
        """The address of the pod, unless it is on a later volume."""
        parts = pod_volume(volume)
        if parts is None or self.newest.outdates(parts):
            return None
        return self.address_of_pod(parts.pod)

    @abstractmethod
    def address_of_pod(self, pod: str) -> Address | None:
        """The address at which a pod receives streams."""

    def announce(self, card: Card) -> None:  # noqa: B027 - there is nothing to do in a pod
        """Do nothing: the API server knows the address of a pod."""

    def abandoned(self) -> bool:
        """Unknown to pods that have no access to the API server."""
        return False

    def dead_letters(self, stream: str) -> Path:
        """A file in the pod's storage, beside its volumes."""
        return self.pod.home / "dead-letter" / f"{stream}.jsonl"

    def shown(self) -> Path | None:
        """Rows for a console go to the pod's output."""
        return None

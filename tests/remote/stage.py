"""A pipeline with two pairs on the cluster in memory, and somebody who looks at it from outside."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.control.world import KEY, World

from tandem.control.pods import Pod
from tandem.kube.kinds import LEASE, Object
from tandem.kube.objects import labels_of, name_of, uid_of
from tandem.kube.port import KubeError, Ran
from tandem.kube.user import UserAccess
from tandem.remote.commands import SIGNAL_PROGRAM
from tandem.remote.observe import PipelinePods, cast_of
from tandem_core.model.kubernetes_names import KIND_LABEL, register_name

BEGAN, LATER = "2024-05-01T12:00:00Z", "2024-05-01T12:01:00Z"


@dataclass
class StandInShell:
    """Answers commands in pods. Every signal finds two processes."""

    state: Mapping[str, Any] | None = None
    """What the process in any pod says of itself; None: it does not answer."""
    signalled: list[tuple[str, int]] = field(default_factory=list)
    fails: KubeError | None = None

    def run(self, pod: Object, command: Sequence[str]) -> Ran:
        if self.fails is not None:
            raise self.fails
        if SIGNAL_PROGRAM in command:
            self.signalled.append((name_of(pod), int(command[-1])))
            return Ran("7 41\n", "command terminated with exit code 137")
        return Ran("", "no answer") if self.state is None else Ran(json.dumps(self.state))


class Stage:
    """A paired pipeline, whose pods are ready."""

    def __init__(self, **spec: Any) -> None:
        self.world = World(pairs={"count": 2}, **spec)
        self.world.until_paired(2)
        self.cluster = self.world.cluster
        self.shell = StandInShell()
        for pod in self.world.pods():
            self.make_ready(name_of(pod), ready=True)

    @property
    def access(self) -> UserAccess:
        return UserAccess(self.cluster, self.shell, KEY.namespace, "test")

    def cast(self) -> PipelinePods:
        return cast_of(self.cluster, self.world.resource())

    def make_ready(self, name: str, *, ready: bool, since: str = LATER) -> None:
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": since}
        self.cluster.touch(self.cluster.pod(name), conditions=[condition])

    def let_lead(self, pod: Pod) -> None:
        """The register says that this pod leads, on its second volume."""
        register = self.cluster.get(LEASE, KEY.namespace, register_name(KEY.name))
        self.cluster.replace({**register, "spec": {"holderIdentity": f"{pod.uid}.1"}})

    def let_lead_say(self, **lead: Any) -> None:
        self.shell.state = {
            "volume": "v",
            "incarnation": 1,
            "part": {"kind": "split", "lead": {"term": 1, **lead}},
        }

    def of_kind(self, kind: str) -> list[Object]:
        return [pod for pod in self.world.pods() if labels_of(pod)[KIND_LABEL] == kind]

    def uids(self, kind: str) -> list[str]:
        return [uid_of(pod) for pod in self.of_kind(kind)]

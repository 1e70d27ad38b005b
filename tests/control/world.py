"""A cluster, the processes in it, and operators that may die at any write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.control.plane import Plane
from tests.kube import resources
from tests.kube.cluster import Cluster

from tandem.control.intent_store import Recorded, read_intent
from tandem.control.nodes import Nodes
from tandem.control.reconcile import OperatorSettings, Reconciler, ReconcilerPorts
from tandem.control.types import Instant, Key
from tandem.kube.kinds import POD, STREAM_PIPELINE, Object, ObjectKind
from tandem.kube.objects import is_going, labels_of, name_of, uid_of
from tandem.kube.port import Kube
from tandem.manifests.desired_state import Images
from tandem_core.model.kubernetes_names import KIND_LABEL, PAIR_LABEL, ROLE_LABEL
from tandem_core.model.pipeline import Refusal, parse_status
from tandem_core.model.states import ConditionStatus, ConditionType, PairState, Phase, Word
from tandem_core.model.status import Condition, Status

KEY = Key("shop", "spending")
SETTINGS = OperatorSettings(Images("runtime:1", "spark:1", "runtime:1"), "tandem-system")
BEGAN = datetime(2024, 5, 1, 12, tzinfo=UTC)


class Killed(BaseException):
    """The operator's process is gone."""


@dataclass
class Mortal:
    """The way to the API server of an operator that dies after so many writes."""

    kube: Kube
    dies_after: int | None = None
    writes: int = 0
    before_deleting: Callable[[Object], None] = field(default=lambda _: None)
    before_applying: Callable[[Object], None] = field(default=lambda _: None)

    def get(self, kind: ObjectKind, namespace: str | None, name: str) -> Object:
        return self.kube.get(kind, namespace, name)

    def list(
        self, kind: ObjectKind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        return self.kube.list(kind, namespace, labels)

    def create(self, document: Object) -> Object:
        return self._after(self.kube.create(document))

    def apply(self, document: Object) -> Object:
        self.before_applying(document)
        return self._after(self.kube.apply(document))

    def replace(self, document: Object) -> Object:
        return self._after(self.kube.replace(document))

    def mark(
        self, document: Object, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Object:
        return self._after(self.kube.mark(document, labels, annotations))

    def write_status(self, document: Object, status: Mapping[str, object]) -> Object:
        return self._after(self.kube.write_status(document, status))

    def evict(self, document: Object) -> None:
        self.before_deleting(document)
        self.kube.evict(document)
        self._after(document)

    def delete(self, document: Object) -> None:
        self.before_deleting(document)
        self.kube.delete(document)
        self._after(document)

    def _after(self, answer: Object) -> Object:
        self.writes += 1
        if self.writes == self.dies_after:
            raise Killed
        return answer


@dataclass
class Tally:
    """Counts what it is told of."""

    events: list[Word] = field(default_factory=list)
    statuses: dict[Key, Status] = field(default_factory=dict)

    def event(self, key: Key, reason: Word) -> None:
        self.events.append(reason)

    def status(self, key: Key, status: Status) -> None:
        self.statuses[key] = status

    def gone(self, key: Key) -> None:
        self.statuses.pop(key, None)


def resource(key: Key = KEY, **spec: Any) -> Object:
    """A pipeline of one pair, unless `spec` says otherwise."""
    return resources.resource(key.namespace, key.name, **{"pairs": {"count": 1}, **spec})


class World:
    """One pipeline in a cluster of two nodes, and one operator at a time."""

    def __init__(self, nodes: int = 2, **spec: Any) -> None:
        self.now = 0.0
        self.cluster = Cluster()
        for number in range(nodes):
            self.cluster.add_node(f"node-{number}")
        self.plane = Plane(self.cluster)
        self.tally = Tally()
        self.mortal = Mortal(self.cluster)
        self.loop = self.new_operator()
        self.cluster.create(resource(**spec))

    # --- operators ----------------------------------------------------------------------------

    def new_operator(self, dies_after: int | None = None) -> Reconciler:
        """An operator that knows nothing takes over."""
        self.mortal = Mortal(self.cluster, dies_after, 0, self._nothing_is_lost)
        self.loop = self.another(self.mortal)
        return self.loop

    def another(self, kube: Kube) -> Reconciler:
        ports = ReconcilerPorts(kube, self.plane, Nodes(kube).at, self.tally)
        return Reconciler(KEY, ports, SETTINGS)

    def _nothing_is_lost(self, deleted: Object) -> None:
        """What the operator deletes never is the last copy that answers, nor a pair that counts."""
        if deleted["kind"] != POD.name and not self.plane.completed:
            recorded = read_intent(self.cluster, KEY, uid_of(self.resource()))
            ends = recorded is not None and recorded.ending
            listed = () if ends else self.plane.book.pairs
            assert labels_of(deleted).get(PAIR_LABEL) not in listed, name_of(deleted)
        volume = f"{uid_of(deleted)}.0"
        pair = self.plane.holding.get(volume)
        if pair is not None:
            others = [v for v, p in self.plane.holding.items() if p == pair and v != volume]
            assert any(self.plane.speaks(other) for other in others), f"{pair} is lost"

    def moment(self) -> Instant:
        return Instant(self.now, BEGAN + timedelta(seconds=self.now))

    # --- time ---------------------------------------------------------------------------------

    def pass_time(self, seconds: float = 1.0) -> None:
        """Everybody but the operator works."""
        self.now += seconds
        self.cluster.settle()
        self.plane.advance(self.now)

    def step(self, seconds: float = 1.0) -> float | None:
        """Everybody works. An operator that dies is replaced by the next one."""
        self.pass_time(seconds)
        try:
            return self.loop.turn(self.moment(), news=True)
        except Killed:
            self.new_operator()
            return 0.0

    def until(self, condition: Callable[[], object], most: int = 60) -> None:
        for _ in range(most):
            if condition():
                return
            self.step()
        assert condition(), f"in vain: {self.status()}\n{self.cluster.events()}"

    def until_paired(self, pairs: int = 1) -> None:
        self.until(lambda: self.is_paired(pairs))

    def is_paired(self, pairs: int = 1) -> bool:
        states = [pair.state for pair in self.status().pairs]
        ready = self.holds(ConditionType.READY)
        return ready and states == [PairState.PAIRED] * pairs and self.labels_are_true()

    # --- what is to be seen -------------------------------------------------------------------

    def resource(self) -> Object:
        return self.cluster.get(STREAM_PIPELINE, *KEY)

    def status(self) -> Status:
        parsed = parse_status(self.resource().get("status") or {})
        assert not isinstance(parsed, Refusal), parsed
        return parsed

    def phase(self) -> Phase:
        return self.status().phase

    def condition(self, kind: ConditionType) -> Condition:
        absent = Condition(
            type=kind,
            status=ConditionStatus.UNKNOWN,
            reason="NotSaid",
            last_transition_time="2024-01-01T00:00:00Z",
        )
        return next((c for c in self.status().conditions if c.type is kind), absent)

    def holds(self, kind: ConditionType) -> bool:
        return self.condition(kind).status is ConditionStatus.TRUE

    def recorded(self) -> Recorded:
        found = read_intent(self.cluster, KEY, uid_of(self.resource()))
        assert found is not None
        return found

    def pods(self, **labels: str) -> list[Object]:
        """The pods that are not on their way out."""
        return [p for p in self.cluster.list(POD, KEY.namespace, labels) if not is_going(p)]

    def replicas(self, pair: str = "pair-0") -> dict[str, Object]:
        """The replicas of a pair by role."""
        found = self.pods(**{PAIR_LABEL: pair})
        return {labels_of(pod).get(ROLE_LABEL, "none"): pod for pod in found}

    def of_kind(self, kind: str) -> list[Object]:
        return self.pods(**{KIND_LABEL: kind})

    def labels_are_true(self) -> bool:
        """Whether labels, intent and status name the same primaries."""
        primaries = dict(self.recorded().intent.primaries)
        shown = {pair.name: pair.primary for pair in self.status().pairs}
        for pair, volume in primaries.items():
            labelled = [
                pod
                for pod in self.cluster.list(POD, KEY.namespace, {PAIR_LABEL: pair})
                if labels_of(pod).get(ROLE_LABEL) == "primary"
            ]
            if [f"{uid_of(pod)}.0" for pod in labelled] != [volume]:
                return False
            if shown.get(pair) != name_of(labelled[0]):
                return False
        return True

    def data_plane(self) -> dict[str, str]:
        """Everything that belongs to the pipeline, with its versions."""
        return {
            f"{kind.name} {name}": document["metadata"]["resourceVersion"]
            for (kind, _, name), document in self.cluster.objects.items()
            if kind.name not in {"StreamPipeline", "Event", "Node"}
        }

    def edit(self, **spec: Any) -> None:
        """The user changes the manifest."""
        changed = self.resource()
        changed["spec"].update(spec)
        self.cluster.replace(changed)

    def reasons(self) -> list[str]:
        """The reasons of all events in order, but those of `Ready`."""
        return [each for each, _ in self.cluster.events() if each not in {"Ready", "NotReady"}]

    def readiness(self) -> list[str]:
        """What events tell of `Ready`, in order: the reason while it is false, else nothing."""
        told = [each for each in self.cluster.events() if each[0] in {"Ready", "NotReady"}]
        return [text.split(": ")[1] if event == "NotReady" else "" for event, text in told]

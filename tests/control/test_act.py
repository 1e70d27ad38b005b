"""What is confirmed right before a pod is given up."""

from collections.abc import Callable

import pytest
from tests.control.world import KEY, SETTINGS, World

from tandem.control.act import Actuator
from tandem.control.observe import ClusterView, list_pipeline, observe_pods
from tandem.control.resize.workloads import workloads_to_run
from tandem.control.types import Instant
from tandem.kube.kinds import DISRUPTION_BUDGET, POD
from tandem.kube.objects import labels_of, name_of, uid_of
from tandem.policy.decisions import Adopt, Decision, EvictPod, Kill, Replace
from tandem_core.model.kubernetes_names import PAIR_LABEL


class Seen:
    """A pipeline as it was seen; whatever happens to it afterwards is not in the picture."""

    def __init__(self) -> None:
        self.world = World()
        self.world.until_paired()
        self.twin, self.pod = (self.world.replicas()[role] for role in ("primary", "secondary"))
        splits = {f"{uid_of(pod)}.0": pod for pod in self.world.of_kind("split")}
        self.lead = splits.pop(self.world.plane.lead or "")
        (self.split,) = splits.values()
        self.hands = Actuator(
            self.world.cluster,
            self.world.plane,
            "token",
            self._sight(self.world.moment()),
            SETTINGS.limits,
            births={"pair-0": 1, "pair-7": 4},
        )

    def _sight(self, moment: Instant) -> ClusterView:
        listing = list_pipeline(self.world.cluster, KEY, (), moment.now)
        assert listing is not None
        looks = self.world.plane.look(listing.pods, "token")
        intent = self.world.recorded().intent
        workloads = workloads_to_run(intent, 2, listing, None)
        return observe_pods(
            listing, intent, looks, moment, workloads=workloads, mark=None, fresh=5.0
        )

    def given_up(self, decision: Decision) -> bool:
        """Whether a pod was deleted."""
        before = {uid_of(pod) for pod in self.world.pods()}
        told = list(self.hands.act([decision]))
        after = {uid_of(pod) for pod in self.world.pods()}
        assert bool(told) is (before != after)
        return before != after

    def freeze(self, pod: dict[str, object]) -> None:
        self.world.plane.frozen.add(uid_of(pod))

    def remake(self, pod: dict[str, object]) -> None:
        """Another pod has the name of one that was seen."""
        cluster = self.world.cluster
        cluster.remove(cluster.get(POD, KEY.namespace, name_of(pod)))
        cluster.create(pod)

    def decisions(self) -> dict[str, Decision]:
        name, volume = name_of(self.pod), f"{uid_of(self.pod)}.0"
        return {
            "kill": Kill(name, "it hangs"),
            "move": EvictPod(name, volume, "it shares a node"),
            "replace": Replace(name, volume, "it is over"),
        }


@pytest.fixture
def seen() -> Seen:
    return Seen()


def prepared(seen: Seen, what: str) -> Decision:
    """A decision that would be carried out if nothing else happened."""
    if what == "kill":
        seen.freeze(seen.pod)
    if what == "replace":
        seen.world.cluster.touch(seen.pod, phase="Failed")
    return seen.decisions()[what]


@pytest.mark.parametrize("what", ["kill", "move", "replace"])
def test_decision_is_carried_out_when_observation_still_holds(seen: Seen, what: str) -> None:
    assert seen.given_up(prepared(seen, what))


Meanwhile = Callable[[Seen], object]


@pytest.mark.parametrize("what", ["kill", "move", "replace"])
@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda seen: seen.remake(seen.pod),
        lambda seen: seen.world.cluster.remove(seen.pod),
        lambda seen: seen.world.cluster.delete(seen.pod),
    ],
    ids=["replaced", "gone", "going"],
)
def test_decision_is_dropped_when_pod_was_replaced_or_deleted(
    seen: Seen, what: str, meanwhile: Meanwhile
) -> None:
    decision = prepared(seen, what)
    meanwhile(seen)
    assert not seen.given_up(decision)


@pytest.mark.parametrize("what", ["kill", "move"])
@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda seen: seen.freeze(seen.twin),
        lambda seen: seen.world.plane.holding.pop(f"{uid_of(seen.twin)}.0"),
        lambda seen: seen.world.cluster.remove(seen.twin),
        lambda seen: seen.world.cluster.delete(seen.twin),
    ],
    ids=["silent", "empty", "gone", "going"],
)
def test_replica_is_kept_when_twin_cannot_carry_the_pair(
    seen: Seen, what: str, meanwhile: Meanwhile
) -> None:
    decision = prepared(seen, what)
    meanwhile(seen)
    assert not seen.given_up(decision)


def test_eviction_respects_disruption_budget(seen: Seen) -> None:
    cluster = seen.world.cluster
    budget = cluster.get(DISRUPTION_BUDGET, KEY.namespace, "spending-g1-pair-0")
    cluster.replace({**budget, "spec": {**budget["spec"], "minAvailable": 2}})
    assert not seen.given_up(seen.decisions()["move"])


def test_kill_is_dropped_when_member_answers_again(seen: Seen) -> None:
    assert not seen.given_up(seen.decisions()["kill"])


def test_replace_is_dropped_when_pod_still_runs(seen: Seen) -> None:
    assert not seen.given_up(seen.decisions()["replace"])


def test_split_is_evicted_only_while_lead_reports_nothing_vulnerable(seen: Seen) -> None:
    move = EvictPod(name_of(seen.split), f"{uid_of(seen.split)}.0", "they share a node")
    seen.world.plane.vulnerable = ("lane-0",)
    assert not seen.given_up(move)
    seen.world.plane.vulnerable = ()
    seen.freeze(seen.lead)
    assert not seen.given_up(move)
    seen.world.plane.frozen.clear()
    assert seen.given_up(move)


@pytest.mark.parametrize("ready", [True, False])
def test_assigned_spare_is_labelled_as_replica_only_once_unready(ready: bool) -> None:
    seen = Seen()
    cluster, name = seen.world.cluster, name_of(seen.pod)
    pod = cluster.get(POD, KEY.namespace, name)
    statuses = [{**pod["status"].get("containerStatuses", [{}])[0], "ready": ready}]
    cluster.touch(pod, containerStatuses=statuses)
    told = list(seen.hands.act([Adopt(name, "pair-7", "it was a spare")]))
    assert bool(told) is not ready
    labelled = labels_of(cluster.get(POD, KEY.namespace, name))[PAIR_LABEL]
    assert labelled == ("pair-0" if ready else "pair-7")

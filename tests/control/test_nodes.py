from typing import Any

import pytest
from tests.kube.cluster import Cluster

from tandem.control.nodes import EVERY, Nodes, hosts_of, read_node
from tandem.kube.kinds import Object, ObjectKind
from tandem.kube.port import Refused


def node(name: str, ready: str = "True", **spec: Any) -> Object:
    zone, cores = ("a", "4") if name == "n0" else ("b", "16")
    return {
        "metadata": {"name": name, "labels": {"zone": zone, "cores": cores, name: "yes"}},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


NO_SCHEDULE = {"key": "own", "value": "us", "effect": "NoSchedule"}


def hosts(*documents: Object, **spec: Any) -> set[str]:
    found = hosts_of({"spec": spec}, [read_node(document) for document in documents])
    assert found is not None
    return set(found)


def among(*terms: Object) -> Object:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (node("n1"), {"n0", "n1"}),
        (node("n1", ready="False"), {"n0"}),
        (node("n1", ready="Unknown"), {"n0"}),
        (node("n1", unschedulable=True), {"n0"}),
        (node("n1", taints=[NO_SCHEDULE]), {"n0"}),
        (node("n1", taints=[{**NO_SCHEDULE, "effect": "NoExecute"}]), {"n0"}),
        (node("n1", taints=[{**NO_SCHEDULE, "effect": "PreferNoSchedule"}]), {"n0", "n1"}),
    ],
)
def test_unschedulable_nodes_do_not_host_pods(second: Object, expected: set[str]) -> None:
    assert hosts(node("n0"), second) == expected


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "own", "operator": "Exists"}, True),
        ({"key": "own", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "own", "value": "us"}, True),
        ({"key": "own", "value": "them"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerated_taints_admit_the_pod(toleration: Object, tolerated: bool) -> None:
    found = hosts(node("n0", taints=[NO_SCHEDULE]), tolerations=[toleration])
    assert found == ({"n0"} if tolerated else set())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "zone", "operator": "In", "values": ["b", "c"]}, {"n1"}),
        ({"key": "zone", "operator": "NotIn", "values": ["b", "c"]}, {"n0"}),
        ({"key": "n0", "operator": "Exists"}, {"n0"}),
        ({"key": "n0", "operator": "DoesNotExist"}, {"n1"}),
        ({"key": "cores", "operator": "Gt", "values": ["4"]}, {"n1"}),
        ({"key": "cores", "operator": "Lt", "values": ["16"]}, {"n0"}),
        ({"key": "zone", "operator": "Gt", "values": ["1"]}, set()),
        ({"key": "cores", "operator": "Near", "values": ["4"]}, set()),
    ],
)
def test_node_affinity_expressions_select_hosts(expression: Object, expected: set[str]) -> None:
    assert (
        hosts(node("n0"), node("n1"), affinity=among({"matchExpressions": [expression]}))
        == expected
    )


def test_node_selector_and_name_fields_select_hosts() -> None:
    assert hosts(node("n0"), node("n1"), nodeSelector={"zone": "b"}) == {"n1"}
    by_name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    affinity = among({"matchFields": [by_name]}, {})
    assert hosts(node("n0"), node("n1"), affinity=affinity) == {"n1"}


def test_hosts_are_unknown_without_node_list() -> None:
    assert hosts_of({"spec": {}}, ()) is None


class Counting(Cluster):
    lists = 0
    refusing = False

    def list(self, kind: ObjectKind, *more: Any) -> list[Object]:
        self.lists += 1
        if self.refusing:
            raise Refused("nodes is forbidden")
        return super().list(kind, *more)


def test_node_list_is_cached_and_optional() -> None:
    cluster = Counting()
    cluster.add_node("n0")
    nodes = Nodes(cluster)
    assert [each.name for each in nodes.at(0.0)] == ["n0"]
    nodes.at(EVERY - 0.1)
    assert cluster.lists == 1
    cluster.refusing = True
    assert nodes.at(EVERY) == ()
    assert cluster.lists == 2

"""What the operator counts on: true of the server in memory, of the client, of a real cluster."""

from typing import Any

import pytest
from tests.kube.conftest import Server
from tests.kube.resources import resource

from tandem.kube.kinds import CONFIG_MAP, POD, REPLICA_SET, Object
from tandem.kube.objects import annotations_of, is_going, labels_of, name_of, owners_of, uid_of
from tandem.kube.port import Conflict, NotFound, Refused


def config_map(server: Server, name: str = "a", **more: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{server.test}-{name}",
            "namespace": server.namespace,
            "labels": {"test": server.test},
        },
        "data": {"value": "1"},
        **more,
    }


def there(server: Server, document: Object) -> Object:
    return server.kube.get(CONFIG_MAP, server.namespace, name_of(document))


def test_created_object_is_readable_and_second_create_conflicts(server: Server) -> None:
    made = server.create(config_map(server))
    assert made["metadata"]["uid"]
    assert there(server, made)["data"] == {"value": "1"}
    with pytest.raises(Conflict):
        server.kube.create(config_map(server))
    with pytest.raises(NotFound):
        server.kube.get(CONFIG_MAP, server.namespace, f"{server.test}-nobody")


def test_invalid_object_is_refused(server: Server) -> None:
    with pytest.raises(Refused):
        server.kube.create(config_map(server, "A_B"))


def test_list_filters_by_label_and_sorts_by_name(server: Server) -> None:
    for name in ("c", "a", "b"):
        server.create(config_map(server, name))
    found = server.kube.list(CONFIG_MAP, server.namespace, {"test": server.test})
    assert [name_of(each) for each in found] == [f"{server.test}-{name}" for name in "abc"]
    assert {(each["apiVersion"], each["kind"]) for each in found} == {("v1", "ConfigMap")}
    everywhere = server.kube.list(CONFIG_MAP, None, {"test": server.test})
    assert [uid_of(each) for each in everywhere] == [uid_of(each) for each in found]
    assert server.kube.list(CONFIG_MAP, server.namespace, {"test": "another"}) == []


def test_apply_creates_updates_and_removes_own_fields(server: Server) -> None:
    first = server.kube.apply(config_map(server, data={"a": "1", "b": "1"}))
    server.made.append(first)
    server.kube.mark(first, {"somebody": "else"}, {"note": "kept"})
    second = server.kube.apply(config_map(server, data={"a": "2", "c": "3"}))
    assert second["data"] == {"a": "2", "c": "3"}
    assert uid_of(second) == uid_of(first)
    assert labels_of(second) == {"test": server.test, "somebody": "else"}
    assert annotations_of(second) == {"note": "kept"}


def test_apply_overwrites_fields_of_other_managers(server: Server) -> None:
    made = server.create(config_map(server))
    server.kube.replace({**made, "data": {"value": "theirs"}})
    assert server.kube.apply(config_map(server))["data"] == {"value": "1"}


def test_reapply_of_same_object_changes_nothing(server: Server) -> None:
    first = server.kube.apply(config_map(server))
    server.made.append(first)
    again = server.kube.apply(config_map(server))
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_concurrent_replace_of_same_version_conflicts(server: Server) -> None:
    made = server.create(config_map(server))
    won = server.kube.replace({**made, "data": {"value": "2"}})
    assert won["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        server.kube.replace({**made, "data": {"value": "3"}})
    assert there(server, made)["data"] == {"value": "2"}
    server.kube.delete(made)
    server.wait_for(lambda: is_gone(server, made))
    with pytest.raises((NotFound, Conflict)):
        server.kube.replace({**won, "data": {"value": "4"}})


def is_gone(server: Server, document: Object) -> bool:
    try:
        there(server, document)
    except NotFound:
        return True
    return False


def test_recreated_object_of_same_name_is_left_alone(server: Server) -> None:
    old = server.create(config_map(server))
    server.kube.delete(old)
    server.wait_for(lambda: is_gone(server, old))
    with pytest.raises(NotFound):
        server.kube.delete(old)
    with pytest.raises(NotFound):
        server.kube.mark(old, {"a": "b"}, {})
    new = server.create(config_map(server))
    with pytest.raises(Conflict):
        server.kube.delete(old)
    with pytest.raises(Conflict):
        server.kube.mark(old, {"a": "b"}, {})
    assert there(server, new)["metadata"]["labels"] == {"test": server.test}


def test_mark_adds_labels_and_annotations(server: Server) -> None:
    made = server.create(config_map(server))
    marked = server.kube.mark(made, {"a": "b"}, {"c": "d"})
    assert labels_of(marked) == {"test": server.test, "a": "b"}
    assert annotations_of(marked) == {"c": "d"}
    assert marked["data"] == made["data"]


def condition(kind: str, status: str) -> Object:
    at = "2024-05-01T12:00:00Z"
    return {"type": kind, "status": status, "reason": "Said", "lastTransitionTime": at}


def test_status_is_separate_from_spec_and_replaced_as_a_whole(server: Server) -> None:
    made = server.create(resource(server.namespace, server.test))
    both = [condition("Ready", "True"), condition("Paired", "False")]
    server.kube.write_status(made, {"phase": "Running", "conditions": both})
    one = {"phase": "Running", "conditions": [condition("Ready", "False")]}
    shown = server.kube.write_status(made, one)
    assert shown["status"]["phase"] == "Running"
    assert [each["type"] for each in shown["status"]["conditions"]] == ["Ready"]
    assert shown["metadata"]["generation"] == made["metadata"]["generation"]
    assert shown["spec"] == made["spec"]
    changed = {**shown, "spec": {**shown["spec"], "suspend": True}}
    changed = server.kube.replace({**changed, "status": {"phase": "Pending"}})
    assert changed["status"]["phase"] == "Running"
    assert changed["metadata"]["generation"] == made["metadata"]["generation"] + 1
    other = {
        **made,
        "metadata": {**made["metadata"], "uid": "11111111-2222-3333-4444-555555555555"},
    }
    with pytest.raises(Conflict):
        server.kube.write_status(other, {"phase": "Pending"})


def test_owned_objects_are_deleted_with_owner(server: Server) -> None:
    owner = server.create(config_map(server))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name_of(owner)}
    owned = config_map(server, "owned")
    owned["metadata"]["ownerReferences"] = [{**reference, "uid": uid_of(owner)}]
    owned = server.create(owned)
    other = server.create(config_map(server, "other"))
    server.kube.delete(owner)
    server.wait_for(lambda: is_gone(server, owned))
    assert not is_gone(server, other)


def replica_set(server: Server, name: str, **labels: str) -> Object:
    selected = {"test": server.test, **labels}
    container = {"name": "none", "image": "localhost/none:0", "imagePullPolicy": "Never"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{server.test}-{name}", "namespace": server.namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": selected},
            "template": {
                "metadata": {"labels": selected},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }


def pods(server: Server, **labels: str) -> list[Object]:
    found = server.kube.list(POD, server.namespace, {"test": server.test, **labels})
    return [pod for pod in found if not is_going(pod)]


def test_replica_set_replaces_pods_and_adopts_matching_ones(server: Server) -> None:
    """What using a spare rests on."""
    spares = server.create(replica_set(server, "spares", kind="spare"))
    pair = server.create(replica_set(server, "pair", kind="replica"))
    server.wait_for(lambda: len(pods(server, kind="spare")) == 2)
    server.wait_for(lambda: len(pods(server, kind="replica")) == 2)
    gone = pods(server, kind="replica")[0]
    server.kube.delete(gone)
    server.wait_for(
        lambda: (
            uid_of(gone) not in [uid_of(pod) for pod in pods(server, kind="replica")]
            and len(pods(server, kind="replica")) == 2
        )
    )
    spare = pods(server, kind="spare")[0]
    cost = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    server.kube.mark(spare, {"kind": "replica"}, cost)

    def adopted() -> bool:
        now = [pod for pod in pods(server, kind="replica") if uid_of(pod) == uid_of(spare)]
        return bool(now) and [o["uid"] for o in owners_of(now[0])] == [uid_of(pair)]

    server.wait_for(adopted)
    server.wait_for(lambda: len(pods(server, kind="replica")) == 2)
    server.wait_for(lambda: len(pods(server, kind="spare")) == 2)
    assert uid_of(spare) in [uid_of(pod) for pod in pods(server, kind="replica")]
    server.kube.delete(server.kube.get(REPLICA_SET, server.namespace, name_of(spares)))
    server.wait_for(lambda: pods(server, kind="spare") == [])

"""A cluster in memory: an API server, and controllers and nodes that work when they are let.

`settle` lets them: garbage collection, Deployments, ReplicaSets that make, adopt, release and
delete pods, a scheduler that spreads pods over the nodes, kubelets that start them.
"""

import hashlib

from tests.kube.api import WALL, Api, copied

from tandem.kube.kinds import DEPLOYMENT, EVENT, NODE, POD, REPLICA_SET, Object, kind_of
from tandem.kube.objects import is_going, labels_of, name_of, namespace_of, owners_of, uid_of


class Cluster(Api):
    """The whole of it."""

    settled = -1
    """The revision in which nobody had anything left to do."""
    full = False
    """Whether no node has room for another pod."""
    quota: int | None = None
    """The most pods that ReplicaSets may make."""

    def add_node(self, name: str) -> None:
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        )

    def lose_node(self, name: str) -> None:
        """A node is not heard of any more; its pods stay as they are until they are evicted."""
        node = self.get(NODE, None, name)
        taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
        self.replace({**node, "spec": {"taints": [taint]}})
        self.touch(node, conditions=[{"type": "Ready", "status": "Unknown"}])

    def bring_back_node(self, name: str) -> None:
        self.replace({**self.get(NODE, None, name), "spec": {}})
        self.touch(self.get(NODE, None, name), conditions=[{"type": "Ready", "status": "True"}])

    def evict_from(self, node: str) -> None:
        """The pods of a lost node were tolerated for long enough."""
        for pod in self.list(POD, None):
            if pod["spec"].get("nodeName") == node:
                self.delete(pod)

    def restart(self, name: str, code: int = 137, message: str = "") -> None:
        """The process in a pod ends, and the kubelet starts it again."""
        pod = self.pod(name)
        (container,) = pod["status"]["containerStatuses"]
        ended = {"exitCode": code, "finishedAt": WALL, "startedAt": WALL, "message": message}
        container = {
            **container,
            "restartCount": container["restartCount"] + 1,
            "lastState": {"terminated": ended},
        }
        self.touch(pod, containerStatuses=[container])

    def crash(self, name: str, code: int, message: str = "") -> None:
        """The process in a pod ends, and the kubelet waits before it starts it again."""
        self.restart(name, code, message)
        pod = self.pod(name)
        (container,) = pod["status"]["containerStatuses"]
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        self.touch(pod, containerStatuses=[{**container, "state": waiting, "started": False}])

    def pod(self, name: str) -> Object:
        return next(pod for pod in self.list(POD, None) if name_of(pod) == name)

    def events(self) -> tuple[tuple[str, str], ...]:
        """What was told, in order: reason and message."""
        found = sorted(self.list(EVENT, None), key=lambda e: int(e["metadata"]["uid"][4:]))
        return tuple((event["reason"], event["message"]) for event in found)

    def settle(self) -> None:
        """Let controllers work until nothing changes any more."""
        while self.settled != self.revision:
            self.settled = self.revision
            self._collect_garbage()
            for deployment in self.list(DEPLOYMENT, None):
                self._deploy(deployment)
            for replica_set in self.list(REPLICA_SET, None):
                self._keep_replicas(replica_set)
            for pod in self.list(POD, None):
                self._run(pod)

    def _collect_garbage(self) -> None:
        uids = {uid_of(document) for document in self.objects.values()}
        for document in list(self.objects.values()):
            owners = list(owners_of(document))
            orphaned = owners and not any(owner["uid"] in uids for owner in owners)
            if orphaned and not is_going(document):
                self.delete(document)

    def _deploy(self, deployment: Object) -> None:
        spec = deployment["spec"]
        template = copied(spec["template"])
        mark = hashlib.sha256(str(template).encode()).hexdigest()[:8]
        template["metadata"]["labels"]["pod-template-hash"] = mark
        name = f"{name_of(deployment)}-{mark}"
        for old in self.list(REPLICA_SET, namespace_of(deployment)):
            owned = any(owner["uid"] == uid_of(deployment) for owner in owners_of(old))
            if owned and name_of(old) != name:
                self.delete(old)
        identity = (REPLICA_SET, namespace_of(deployment), name)
        if identity in self.objects:
            there = self.objects[identity]
            if there["spec"]["replicas"] != spec["replicas"]:
                self.replace({**there, "spec": {**there["spec"], "replicas": spec["replicas"]}})
            return
        selector = {**spec["selector"]["matchLabels"], "pod-template-hash": mark}
        self.create(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": name,
                    "namespace": namespace_of(deployment),
                    "labels": template["metadata"]["labels"],
                    "annotations": copied(deployment["metadata"].get("annotations", {})),
                    "ownerReferences": [_owner(deployment)],
                },
                "spec": {
                    "replicas": spec["replicas"],
                    "selector": {"matchLabels": selector},
                    "template": template,
                },
            }
        )

    def _keep_replicas(self, replica_set: Object) -> None:
        selector = replica_set["spec"]["selector"]["matchLabels"].items()
        active = []
        for pod in self.list(POD, namespace_of(replica_set)):
            matches = selector <= dict(labels_of(pod)).items()
            owner = next((o["uid"] for o in owners_of(pod) if o.get("controller")), None)
            if owner == uid_of(replica_set) and not matches:
                self._disown(pod)
            elif matches and owner in {None, uid_of(replica_set)} and _is_active(pod):
                active.append(pod if owner else self._adopt(pod, replica_set))
        count = replica_set["spec"]["replicas"]
        for _ in range(count - len(active)):
            if self.quota is not None and len(self.list(POD, None)) >= self.quota:
                self._tell(replica_set, "ReplicaFailure", "True", "FailedCreate", "exceeded quota")
                break
            self._make_pod(replica_set)
        for surplus in sorted(active, key=_worth)[: max(0, len(active) - count)]:
            self.delete(surplus)

    def _tell(self, document: Object, kind: str, status: str, reason: str, message: str) -> None:
        """Write a condition, if it is not there."""
        said = {"type": kind, "status": status, "reason": reason, "message": message}
        if said not in (document.get("status") or {}).get("conditions", ()):
            self.touch(document, conditions=[said])

    def _disown(self, pod: Object) -> None:
        changed = copied(pod)
        changed["metadata"]["ownerReferences"] = []
        self.replace(changed)

    def _adopt(self, pod: Object, replica_set: Object) -> Object:
        changed = copied(pod)
        changed["metadata"]["ownerReferences"] = [_owner(replica_set)]
        return self.replace(changed)

    def _make_pod(self, replica_set: Object) -> None:
        template = copied(replica_set["spec"]["template"])
        name = f"{name_of(replica_set)}-{self.made + 1:05d}"
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **template["metadata"],
                    "name": name,
                    "namespace": namespace_of(replica_set),
                    "ownerReferences": [_owner(replica_set)],
                },
                "spec": template["spec"],
                "status": {"phase": "Pending"},
            }
        )

    # --- scheduler and kubelets ----------------------------------------------------------------

    def _run(self, pod: Object) -> None:
        node = pod["spec"].get("nodeName")
        if node is None:
            self._schedule(pod)
        elif node in self._open_nodes():
            if is_going(pod):
                self.remove(pod)
            elif pod["status"]["phase"] == "Pending":
                self._start(pod)

    def _open_nodes(self) -> tuple[str, ...]:
        nodes = self.list(NODE, None)
        return tuple(name_of(n) for n in nodes if n["status"]["conditions"][0]["status"] == "True")

    def _schedule(self, pod: Object) -> None:
        """The node with the fewest pods of the same kind, if it is as open as the spread wants.

        There are no claims in this cluster: pods that need one wait.
        """
        nodes = [n for n in self._open_nodes() if self._takes(self.get(NODE, None, n), pod)]
        volumes = pod["spec"].get("volumes") or ()
        if not nodes or any("persistentVolumeClaim" in volume for volume in volumes):
            return
        if self.full:
            self._tell(pod, "PodScheduled", "False", "Unschedulable", "0 nodes have room")
            return
        (spread,) = pod["spec"].get("topologySpreadConstraints") or [{}]
        selector = spread.get("labelSelector", {}).get("matchLabels", {}).items()
        peers = [p for p in self.list(POD, namespace_of(pod)) if not is_going(p)]
        alike = [p for p in peers if selector <= dict(labels_of(p)).items()]
        counts = {
            n: (
                sum(p["spec"].get("nodeName") == n for p in alike),
                sum(p["spec"].get("nodeName") == n for p in peers),
                n,
            )
            for n in nodes
        }
        chosen = min(nodes, key=lambda n: counts[n])
        self.replace({**pod, "spec": {**pod["spec"], "nodeName": chosen}})

    def _takes(self, node: Object, pod: Object) -> bool:
        wanted = dict(pod["spec"].get("nodeSelector") or {}).items()
        return not node["spec"].get("taints") and wanted <= dict(labels_of(node)).items()

    def _start(self, pod: Object) -> None:
        container = {
            "name": pod["spec"]["containers"][0]["name"],
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": WALL}},
            "lastState": {},
        }
        address = f"10.0.0.{int(uid_of(pod)[4:])}"
        self.touch(pod, phase="Running", podIP=address, containerStatuses=[container])


def _owner(document: Object) -> Object:
    kind = kind_of(document)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": name_of(document),
        "uid": uid_of(document),
        "controller": True,
    }


def _is_active(pod: Object) -> bool:
    return not is_going(pod) and pod["status"].get("phase") not in {"Failed", "Succeeded"}


def _worth(pod: Object) -> tuple[bool, bool, bool, int, int]:
    """Of too many pods those that are worth least go first, as ReplicaSets rank them."""
    annotations = pod["metadata"].get("annotations") or {}
    cost = int(annotations.get("controller.kubernetes.io/pod-deletion-cost", 0))
    ready = any(c["type"] == "Ready" for c in pod["status"].get("conditions", ()))
    running = pod["status"].get("phase") == "Running"
    return "nodeName" in pod["spec"], running, ready, cost, -int(uid_of(pod)[4:])

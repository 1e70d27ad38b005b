"""An API server in memory, as far as the operator uses one.

It keeps resource versions, generations and identities, refuses what conflicts, and merges what is
applied. Nothing happens in it by itself: see `tests.kube.cluster`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tandem.kube.kinds import DISRUPTION_BUDGET, POD, STREAM_PIPELINE, Object, ObjectKind, kind_of
from tandem.kube.objects import is_going, labels_of, name_of, namespace_of, owners_of, uid_of
from tandem.kube.port import Conflict, NotFound, Refused

T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
Identity = tuple[ObjectKind, str | None, str]

WALL = "2024-05-01T12:00:00Z"
"""When everything in this cluster happens."""
_SERVER_SIDE = ("uid", "resourceVersion", "generation", "creationTimestamp")


@dataclass
class Api:
    """See `tandem.kube.port.Kube`."""

    objects: dict[Identity, Object] = field(default_factory=dict)
    applied: dict[Identity, Object] = field(default_factory=dict)
    """What was last applied: what is in it and not in the next one goes."""
    changes: list[tuple[int, str, Object]] = field(default_factory=list)
    """Everything that happened, in which revision, for watches."""
    made: int = 0
    revision: int = 0

    # --- the port -----------------------------------------------------------------------------

    def get(self, kind: ObjectKind, namespace: str | None, name: str) -> Object:
        return copied(self._found((kind, namespace if kind.namespaced else None, name)))

    def list(
        self, kind: ObjectKind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        wanted = (labels or {}).items()
        return [
            copied(document)
            for (each, within, _), document in sorted(self.objects.items(), key=lambda i: i[0][2])
            if each is kind and namespace in {None, within}
            if wanted <= dict(labels_of(document)).items()
        ]

    def create(self, document: Object) -> Object:
        identity = identity_of(document)
        if identity in self.objects:
            raise Conflict(f"{identity[0].plural} {identity[2]!r} already exists")
        self._check(document)
        made = copied(document)
        if identity[0] is STREAM_PIPELINE:
            made.pop("status", None)
        self.made += 1
        metadata = made["metadata"]
        metadata.update(uid=f"uid-{self.made}", generation=1, creationTimestamp=WALL)
        return self._store("ADDED", made)

    def apply(self, document: Object) -> Object:
        identity = identity_of(document)
        before, self.applied[identity] = self.applied.get(identity, {}), copied(document)
        if identity not in self.objects:
            return self.create(document)
        merged = copied(self.objects[identity])
        _remove(merged, before, document)
        _merge(merged, document)
        self._check(merged)
        return self._change(merged)

    def replace(self, document: Object) -> Object:
        there = self._found(identity_of(document))
        version = document["metadata"].get("resourceVersion")
        if version is not None and version != there["metadata"]["resourceVersion"]:
            raise Conflict(f"{name_of(document)!r}: the object has been modified")
        changed = copied(document)
        for server_side in _SERVER_SIDE:
            changed["metadata"][server_side] = there["metadata"][server_side]
        if identity_of(document)[0] in {STREAM_PIPELINE, POD} and "status" in there:
            changed["status"] = copied(there["status"])
        return self._change(changed)

    def mark(
        self, document: Object, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Object:
        changed = copied(self._same(document))
        _merge(changed["metadata"], {"labels": dict(labels), "annotations": dict(annotations)})
        return self._change(changed)

    def write_status(self, document: Object, status: Mapping[str, object]) -> Object:
        changed = copied(self._same(document))
        changed["status"] = copied(dict(status))
        return self._change(changed)

    def evict(self, document: Object) -> None:
        there = self._same(document)
        for budget in self.list(DISRUPTION_BUDGET, namespace_of(there)):
            chosen = budget["spec"]["selector"]["matchLabels"].items()
            if not chosen <= dict(labels_of(there)).items():
                continue
            pods = self.list(POD, namespace_of(there), dict(chosen))
            staying = [pod for pod in pods if not is_going(pod)]
            spared = budget["spec"].get("minAvailable", len(pods) - 1)
            if len(staying) <= spared:
                raise Conflict("Cannot evict pod as it would violate the pod's disruption budget.")
        self.delete(there)

    def delete(self, document: Object) -> None:
        there = self._same(document)
        if identity_of(there)[0] is POD and there["spec"].get("nodeName"):
            changed = copied(there)
            changed["metadata"].setdefault("deletionTimestamp", WALL)
            self._change(changed)
        else:
            self.remove(there)

    # --- storage ------------------------------------------------------------------------------

    def remove(self, document: Object) -> None:
        """Take an object away at once, as `--force` does."""
        self.revision += 1
        self.applied.pop(identity_of(document), None)
        self._log("DELETED", self.objects.pop(identity_of(document)))

    def touch(self, document: Object, **status: Any) -> Object:
        """Set parts of the status of an object, as its controller does."""
        changed = copied(self.objects[identity_of(document)])
        changed["status"] = {**changed.get("status", {}), **status}
        return self._change(changed)

    def _found(self, identity: Identity) -> Object:
        if identity not in self.objects:
            raise NotFound(f"{identity[0].plural} {identity[2]!r} not found")
        return self.objects[identity]

    def _same(self, document: Object) -> Object:
        there = self._found(identity_of(document))
        if uid_of(there) != uid_of(document):
            raise Conflict(f"{name_of(document)!r} is another object now")
        return there

    def _change(self, changed: Object) -> Object:
        before = self.objects[identity_of(changed)]
        if changed == before:
            return copied(before)
        if changed.get("spec") != before.get("spec"):
            changed["metadata"]["generation"] = before["metadata"]["generation"] + 1
        return self._store("MODIFIED", changed)

    def _store(self, change: str, document: Object) -> Object:
        self.revision += 1
        document["metadata"]["resourceVersion"] = str(self.revision)
        self.objects[identity_of(document)] = document
        self._log(change, document)
        return copied(document)

    def _log(self, change: str, document: Object) -> None:
        self.changes.append((self.revision, change, copied(document)))

    def _check(self, document: Object) -> None:
        if not _NAME.fullmatch(name_of(document)):
            raise Refused(f"metadata.name: {name_of(document)!r} is not a name")
        if sum(bool(owner.get("controller")) for owner in owners_of(document)) > 1:
            raise Refused("metadata.ownerReferences: only one reference can be the controller")


def copied(data: T) -> T:
    """Plain data once more, as a server reads and writes them."""
    again: T = json.loads(json.dumps(data))
    return again


def identity_of(document: Object) -> Identity:
    kind = kind_of(document)
    return kind, namespace_of(document) if kind.namespaced else None, name_of(document)


def _merge(into: Object, patch: Mapping[str, Any]) -> None:
    """Mappings are merged, owners added, everything else is replaced; None takes away."""
    for key, value in patch.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif key == "ownerReferences" and into.get(key):
            known = {owner["uid"]: owner for owner in into[key]}
            into[key] = list((known | {owner["uid"]: owner for owner in value}).values())
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = copied(value)


def _remove(document: Object, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """What was applied before and is not applied any more goes."""
    for key, value in before.items():
        if key not in after:
            document.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(document.get(key), dict):
            _remove(document[key], value, after[key])

"""Reads nodes, and selects those that would take a pod."""

import logging
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.kube.kinds import NODE, Object
from tandem.kube.objects import labels_of, name_of
from tandem.kube.port import Kube, Refused

EVERY = 10.0
"""Seconds for which a listing of the nodes is reused."""

_KEEPS_OUT = frozenset({"NoSchedule", "NoExecute"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as far as placing pods goes."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    open: bool
    """Whether it is ready and schedulable."""


def read_node(document: Object) -> Node:
    """A node's document."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    taints = tuple(t for t in spec.get("taints") or () if t.get("effect") in _KEEPS_OUT)
    return Node(
        name=name_of(document),
        labels=labels_of(document),
        taints=taints,
        open=ready and not spec.get("unschedulable", False),
    )


def hosts_of(pod: Object, nodes: Collection[Node]) -> frozenset[str] | None:
    """The nodes that would take a pod by its selector, its tolerations and its node affinity.

    `pod` may be a template. Free capacity is not considered. None if no nodes are known.
    """
    if not nodes:
        return None
    spec = pod["spec"]
    return frozenset(
        node.name
        for node in nodes
        if node.open
        and all(node.labels.get(k) == v for k, v in (spec.get("nodeSelector") or {}).items())
        and all(_tolerated(taint, spec.get("tolerations") or ()) for taint in node.taints)
        and _has_affinity(node, spec)
    )


def _tolerated(taint: Mapping[str, str], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return any(
        toleration.get("key") in {None, "", taint.get("key")}
        and toleration.get("effect") in {None, "", taint.get("effect")}
        and (
            toleration.get("operator") == "Exists"
            or (toleration.get("value") or "") == (taint.get("value") or "")
        )
        for toleration in tolerations
    )


def _has_affinity(node: Node, spec: Mapping[str, Any]) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_is_in_term(node, term) for term in required.get("nodeSelectorTerms") or ())


def _is_in_term(node: Node, term: Mapping[str, Any]) -> bool:
    """Whether a term selects a node; an empty term selects none."""
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    fields = {"metadata.name": node.name}
    return bool(by_label or by_field) and all(
        _matches(values, expression)
        for values, expressions in ((node.labels, by_label), (fields, by_field))
        for expression in expressions
    )


def _matches(known: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    """Whether an expression holds; one with an unknown operator does not."""
    value, values = known.get(expression["key"]), expression.get("values") or ()
    bound = next(iter(values), None)
    holds = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
        "Gt": _is_less(bound, value),
        "Lt": _is_less(value, bound),
    }
    return holds.get(str(expression.get("operator")), False)


def _is_less(one: str | None, other: str | None) -> bool:
    """Whether both are whole numbers and one is less than the other."""
    try:
        return int(one or "") < int(other or "")
    except ValueError:
        return False


class Nodes:
    """The nodes of the cluster, listed every few seconds for all pipelines together."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._lock = threading.Lock()
        self._read: tuple[float, tuple[Node, ...]] | None = None

    def at(self, now: float) -> tuple[Node, ...]:
        """The nodes as last listed; none if the operator may not list them.

        Without nodes no pod is moved to another one.
        """
        with self._lock:
            if self._read is None or now - self._read[0] >= EVERY:
                self._read = now, self._list()
            return self._read[1]

    def _list(self) -> tuple[Node, ...]:
        try:
            return tuple(read_node(document) for document in self._kube.list(NODE, None))
        except Refused as problem:
            _log.debug("nodes cannot be listed: %s", problem)
            return ()

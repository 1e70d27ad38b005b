"""Finds the resource of a pipeline, and the assignment of its keys."""

from tandem.control.intent_store import (
    IntentUnreadable,
    NameConflict,
    function_beside,
    read_intent,
)
from tandem.control.types import Key
from tandem.kube.kinds import STREAM_PIPELINE, Object
from tandem.kube.objects import name_of, namespace_of, uid_of
from tandem.kube.port import Kube, NotFound
from tandem.output.member_table import Missing
from tandem.policy.change.codec import RoutingCodec
from tandem.policy.change.generations import numbered
from tandem.policy.layout.layout import Layout
from tandem_core.model.fields.problems import suggestion
from tandem_core.routing.errors import RoutingError


def find_pipeline(kube: Kube, namespace: str, name: str | None) -> Object:
    """Return the resource of a pipeline; without a name, the only one in the namespace.

    Raises:
        Missing: there is none, or there are several.
        KubeError: the cluster does not answer, or does not allow it.
    """
    try:
        there = {name_of(each): each for each in kube.list(STREAM_PIPELINE, namespace)}
    except NotFound:
        raise Missing(
            "the cluster has no StreamPipeline resource: Tandem is not installed"
        ) from None
    if name in there:
        return there[name]
    names = ", ".join(there)
    if name is None and len(there) == 1:
        return next(iter(there.values()))
    if not there:
        raise Missing(f"no pipeline in namespace {namespace}; name another with --namespace")
    if name is None:
        raise Missing(f"several pipelines in namespace {namespace}: {names}; name one of them")
    near = suggestion(name, there)
    raise Missing(f"no pipeline {name} in namespace {namespace}{near} (pipelines: {names})")


def layout_on_cluster(kube: Kube, resource: Object) -> Layout | None:
    """Return the assignment of keys in a pipeline's intent; None if it has no intent yet.

    Raises:
        Missing: the intent, or its routing function, cannot be read.
        KubeError: the cluster does not answer, or does not allow it.
    """
    key = Key(namespace_of(resource) or "", name_of(resource))
    try:
        recorded = read_intent(kube, key, uid_of(resource))
        if recorded is None:
            return None
        codec = RoutingCodec(lambda digest: function_beside(recorded.document, digest))
        return codec.layout_of(numbered(recorded.intent))
    except (NameConflict, IntentUnreadable) as problem:
        raise Missing(str(problem)) from None
    except RoutingError as problem:
        raise Missing(f"the routing function of {key} cannot be read: {problem}") from None

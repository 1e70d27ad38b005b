"""Finds the resource of a pipeline."""

from tandem.kube.kinds import STREAM_PIPELINE, Object
from tandem.kube.objects import name_of
from tandem.kube.port import Kube, NotFound
from tandem.output.member_table import Missing
from tandem_core.model.fields.problems import suggestion


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

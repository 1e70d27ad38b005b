"""Installs Tandem on this machine's cluster, for a demonstration or a measurement."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_images.build import build_images, references, tag

from cluster.base_image import base_image
from cluster.kind_cluster import KindCluster
from cluster.steps import say
from cluster.trial.nodes import ClusterNodes
from cluster.trial.records import keep
from cluster.trial.release import Release
from cluster.trial.space import MOUNT, Space, with_storage
from tandem.kube.client import connect

RECORDS = Path(__file__).parents[2] / "build" / "stage"


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster with the chart installed."""

    release: Release
    nodes: ClusterNodes

    @property
    def cluster(self) -> KindCluster:
        """The cluster."""
        return self.release.cluster

    @contextmanager
    def space(self, title: str) -> Iterator[Space]:
        """Create a namespace with a shared directory; delete it at the end of the block.

        If the block raises, logs and objects of the namespace are kept in `RECORDS`.

        Raises:
            StepFailed: the namespace cannot be created or deleted.
        """
        with tempfile.TemporaryDirectory(prefix="tandem-stage-") as records:
            made = Space.make(self.cluster, self.release.api, title, Path(records))
            try:
                yield made
            except Exception:
                say(f"logs and objects are kept in {RECORDS / made.name}")
                keep(self.cluster, made.name, RECORDS / made.name)
                raise
            finally:
                made.remove(forget=True)

    def replaceable_node(self) -> str:
        """A worker without the operator: its failure does not delay the operator."""
        (operator,) = self.release.operators()
        return self.nodes.others(operator.node)[0]


@contextmanager
def stage(*, leave: bool) -> Iterator[Stage]:
    """Create the cluster if there is none, build the images, install the chart.

    At the end the cluster or the chart is removed again if it was not there before, unless `leave`.

    Raises:
        StepFailed: a step failed.
    """
    cluster = KindCluster.here()
    new_cluster = not cluster.runs()
    with ExitStack() as removals:
        if new_cluster and not leave:
            removals.callback(cluster.down)
        cluster.up()
        base = base_image(cluster.engine)
        images = references("localhost", tag(base))
        build_images(cluster.engine, base, images)
        cluster.load(images.values())
        api = connect(str(cluster.kubeconfig))
        made = Stage(Release(cluster, api, images), ClusterNodes(cluster, api))
        made.nodes.heal()
        if not (new_cluster or leave or made.release.operators()):
            removals.callback(made.release.uninstall)
        made.release.install()
        yield made


def with_shared_directory(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its files in the shared directory of a space.

    Relative paths of files start at that directory.
    """
    spec = manifest["spec"]
    changed = {
        "streams": [{**each, "source": _moved(each["source"])} for each in spec["streams"]],
        "sinks": [_moved(each) for each in spec["sinks"]],
        "splits": {**spec.get("splits", {}), "template": with_storage()},
        "merges": {**spec.get("merges", {}), "template": with_storage()},
    }
    return {**manifest, "spec": {**spec, **changed}}


def _moved(place: Mapping[str, Any]) -> dict[str, Any]:
    files = place.get("files")
    if files is None:
        return dict(place)
    return {**place, "files": {**files, "path": str(Path(MOUNT, files["path"]))}}

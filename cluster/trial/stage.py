"""Tandem on the cluster of this machine, for a demonstration or a measurement."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_images.build import build_images, references, tag

from cluster.base_image import base_image
from cluster.kind_cluster import Cluster
from cluster.steps import say
from cluster.trial.nodes import Nodes
from cluster.trial.records import keep
from cluster.trial.release import Release
from cluster.trial.space import MOUNT, Space, with_storage
from tandem.kube.client import connect

RECORDS = Path(__file__).parents[2] / "build" / "stage"


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster on which the chart is installed."""

    release: Release
    nodes: Nodes

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.release.cluster

    @contextmanager
    def space(self, title: str) -> Iterator[Space]:
        """A namespace with a directory that pods share with this machine, removed at the end.

        If something goes wrong, what was to be seen in it is kept in `RECORDS`.

        Raises:
            StepFailed: it cannot be made or removed.
        """
        with tempfile.TemporaryDirectory(prefix="tandem-stage-") as records:
            made = Space.make(self.cluster, self.release.api, title, Path(records))
            try:
                yield made
            except Exception:
                say(f"what there was is kept in {RECORDS / made.name}")
                keep(self.cluster, made.name, RECORDS / made.name)
                raise
            finally:
                made.remove(forget=True)

    def replaceable_node(self) -> str:
        """A worker without the operator: what is measured or shown there does not wait for it."""
        (operator,) = self.release.operators()
        return self.nodes.others(operator.node)[0]


@contextmanager
def stage(*, leave: bool) -> Iterator[Stage]:
    """Make the cluster if there is none, build the images, install the chart.

    At the end what was not there before goes, unless all is to be left there.

    Raises:
        StepFailed: something failed.
    """
    cluster = Cluster.here()
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
        made = Stage(Release(cluster, api, images), Nodes(cluster, api))
        made.nodes.heal()
        if not (new_cluster or leave or made.release.operators()):
            removals.callback(made.release.uninstall)
        made.release.install()
        yield made


def with_shared_directory(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same pipeline with its files in the directory of a space.

    Paths of files that are relative begin there.
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

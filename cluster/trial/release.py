"""Installs and removes the chart, and disturbs the operator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.kind_cluster import KindCluster
from cluster.programs import HELM_COMMAND, built
from cluster.steps import ask
from cluster.trial.pods import TrialPod, read_pod
from cluster.trial.space import make_namespace
from cluster.trial.waiting import until
from tandem.kube.kinds import LEASE, POD
from tandem.kube.port import Kube
from tandem_core.model.kubernetes_names import (
    APPLICATION,
    COMPONENT_LABEL,
    FIELD_MANAGER,
    NAME_LABEL,
    OPERATOR,
)

NAME = "tandem"
NAMESPACE = "tandem-system"
DEPLOYMENT = "tandem-operator"
DEFINITION = "streampipelines.tandem.dev"

CHART = Path(__file__).parents[2] / "charts" / "tandem"
_PATIENCE = "180s"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the chart; it need not be installed."""

    cluster: KindCluster
    api: Kube
    images: Mapping[str, str]
    """References of the project's images, by their short names."""
    chart: Path = CHART

    # --- helm ---------------------------------------------------------------------------------

    def install(self, values: Mapping[str, Any] | None = None) -> None:
        """Install the chart, or upgrade it to these values, and wait for it."""
        make_namespace(self.cluster, NAMESPACE)
        where = ["--namespace", NAMESPACE, "--wait", "--timeout", _PATIENCE, "--values", "-"]
        text = json.dumps({**self._values(), **(values or {})})
        self._helm("upgrade", "--install", NAME, self.chart, *where, text=text)
        wait = ["wait", "--for=condition=Established", f"--timeout={_PATIENCE}"]
        self.cluster.kubectl(*wait, f"customresourcedefinition/{DEFINITION}")

    def uninstall(self) -> None:
        """Uninstall the chart, and wait until the operator is gone."""
        self._helm("uninstall", NAME, "--namespace", NAMESPACE, "--wait", "--timeout", _PATIENCE)
        until(lambda: not self.operators(), 60, "the operator is gone")

    def test(self) -> None:
        """`helm test`.

        Raises:
            StepFailed: it fails.
        """
        self._helm("test", NAME, "--namespace", NAMESPACE, "--timeout", _PATIENCE)

    def _values(self) -> dict[str, Any]:
        """Registry and tag, which are the same for all images."""
        registry, _, name = self.images["operator"].rpartition("/")
        return {"images": {"registry": registry, "tag": name.partition(":")[2]}}

    def _helm(self, *arguments: object, text: str | None = None) -> str:
        return ask([built(HELM_COMMAND), *arguments], env=self.cluster.env, text=text)

    # --- the operator -------------------------------------------------------------------------

    def operators(self) -> list[TrialPod]:
        """The operator's pods."""
        labels = {NAME_LABEL: APPLICATION, COMPONENT_LABEL: OPERATOR}
        return [read_pod(document) for document in self.api.list(POD, NAMESPACE, labels)]

    def scale(self, count: int) -> None:
        """Run `count` operators, and wait until exactly those are ready."""
        self.kubectl("scale", f"deployment/{DEPLOYMENT}", f"--replicas={count}")
        until(
            lambda: [pod.well for pod in self.operators()] == [True] * count,
            120,
            f"there are {count} operators",
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """Run no operator until the end of the block; then one again."""
        self.scale(0)
        try:
            yield
        finally:
            self.scale(1)

    @contextmanager
    def twofold(self) -> Iterator[None]:
        """Run two operators until the end of the block."""
        self.scale(2)
        try:
            yield
        finally:
            self.scale(1)

    def kill(self, pod: TrialPod) -> None:
        """Delete an operator's pod without grace."""
        self.kubectl("delete", "pod", pod.name, "--force", "--grace-period=0", "--wait=false")

    def acting(self) -> TrialPod | None:
        """The operator that holds the Lease, unless it is gone."""
        lease = self.api.get(LEASE, NAMESPACE, FIELD_MANAGER)
        # The holder's identity is the pod's name, `_` and more.
        holder = str(lease["spec"].get("holderIdentity") or "").partition("_")[0]
        return next((pod for pod in self.operators() if pod.name == holder), None)

    def kubectl(self, *arguments: object) -> str:
        """Run kubectl in the operator's namespace."""
        return self.cluster.kubectl("--namespace", NAMESPACE, *arguments)

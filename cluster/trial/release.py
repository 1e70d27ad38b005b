"""The chart on the cluster: installed, upgraded, uninstalled; the operator, there and away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.kind_cluster import Cluster
from cluster.programs import HELM_COMMAND, built
from cluster.steps import ask
from cluster.trial.pods import Pod, read_pod
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
    """A release of the chart, which need not be installed."""

    cluster: Cluster
    api: Kube
    images: Mapping[str, str]
    """References of the images that the project consists of, by their short names."""
    chart: Path = CHART

    # --- helm ---------------------------------------------------------------------------------

    def install(self, values: Mapping[str, Any] | None = None) -> None:
        """Install the chart, or bring what is installed to these values, and wait for it."""
        make_namespace(self.cluster, NAMESPACE)
        where = ["--namespace", NAMESPACE, "--wait", "--timeout", _PATIENCE, "--values", "-"]
        text = json.dumps({**self._values(), **(values or {})})
        self._helm("upgrade", "--install", NAME, self.chart, *where, text=text)
        wait = ["wait", "--for=condition=Established", f"--timeout={_PATIENCE}"]
        self.cluster.kubectl(*wait, f"customresourcedefinition/{DEFINITION}")

    def uninstall(self) -> None:
        """Uninstall it, and wait until the operator is gone."""
        self._helm("uninstall", NAME, "--namespace", NAMESPACE, "--wait", "--timeout", _PATIENCE)
        until(lambda: not self.operators(), 60, "the operator is gone")

    def test(self) -> None:
        """`helm test`.

        Raises:
            StepFailed: it does not succeed.
        """
        self._helm("test", NAME, "--namespace", NAMESPACE, "--timeout", _PATIENCE)

    def _values(self) -> dict[str, Any]:
        """Registry and tag, which all images have in common."""
        registry, _, name = self.images["operator"].rpartition("/")
        return {"images": {"registry": registry, "tag": name.partition(":")[2]}}

    def _helm(self, *arguments: object, text: str | None = None) -> str:
        return ask([built(HELM_COMMAND), *arguments], env=self.cluster.env, text=text)

    # --- the operator -------------------------------------------------------------------------

    def operators(self) -> list[Pod]:
        """The operator's pods."""
        labels = {NAME_LABEL: APPLICATION, COMPONENT_LABEL: OPERATOR}
        return [read_pod(document) for document in self.api.list(POD, NAMESPACE, labels)]

    def scale(self, count: int) -> None:
        """Have so many operators, and wait until they are ready or gone."""
        self.kubectl("scale", f"deployment/{DEPLOYMENT}", f"--replicas={count}")
        until(
            lambda: [pod.well for pod in self.operators()] == [True] * count,
            120,
            f"there are {count} operators",
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """No operator until the end of the block; then it is there again, and ready."""
        self.scale(0)
        try:
            yield
        finally:
            self.scale(1)

    @contextmanager
    def twofold(self) -> Iterator[None]:
        """Two operators until the end of the block."""
        self.scale(2)
        try:
            yield
        finally:
            self.scale(1)

    def kill(self, pod: Pod) -> None:
        """Delete an operator's pod at once."""
        self.kubectl("delete", "pod", pod.name, "--force", "--grace-period=0", "--wait=false")

    def acting(self) -> Pod | None:
        """The operator that holds the Lease, if it is there."""
        lease = self.api.get(LEASE, NAMESPACE, FIELD_MANAGER)
        # A name, and an identity after it.
        holder = str(lease["spec"].get("holderIdentity") or "").partition("_")[0]
        return next((pod for pod in self.operators() if pod.name == holder), None)

    def kubectl(self, *arguments: object) -> str:
        """Run kubectl in the operator's namespace."""
        return self.cluster.kubectl("--namespace", NAMESPACE, *arguments)

"""`python -m tandem.handlers`: the operator."""

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import kopf

from tandem.control.members import Asked
from tandem.control.nodes import Nodes
from tandem.control.reconcile import OperatorSettings, Reconciler, ReconcilerPorts
from tandem.control.types import Key
from tandem.handlers.crd_wait import wait_for_pipelines
from tandem.handlers.election import EVERY
from tandem.handlers.lease import Leadership
from tandem.handlers.metrics import Metrics, serve
from tandem.handlers.timeout_flags import add_timeouts, timeouts_of
from tandem.handlers.watches import registry_of, settings_of
from tandem.handlers.workers import Workers
from tandem.kube.client import connect
from tandem.kube.port import Kube
from tandem.manifests.desired_state import Images
from tandem.policy.timeouts import Timeouts
from tandem_core.logs.json_lines import JsonLines
from tandem_core.model.kubernetes_names import (
    NAMESPACE_VARIABLE,
    POD_NAME_VARIABLE,
    POD_UID_VARIABLE,
)

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until stopped. The process exits with 1 if the leader election is lost."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        limits = timeouts_of(asked)
    except ValueError as problem:
        parser.error(str(problem))
    write_logs(asked.log_level)
    if asked.kubeconfig is not None:
        os.environ["KUBECONFIG"] = asked.kubeconfig
    kube, metrics = connect(asked.kubeconfig), Metrics()
    # A short timeout: one late answer must not cost the lease while there is time to ask again.
    hasty = connect(asked.kubeconfig, patience=EVERY)
    leadership = Leadership(hasty, asked.own_namespace, asked.identity)
    workers = Workers(_loops(kube, metrics, asked, limits), leadership.leads, metrics)
    serve(asked.port, workers.healthy)
    if not _wait_for(leadership):
        return 0
    _log.info("leader election won by %s", asked.identity)
    metrics.leading(True)
    leadership.keep(_lost)
    workers.start(asked.workers)
    try:
        if _wait_until_defined(kube, asked.namespace):
            asyncio.run(_watch(workers, asked))
    finally:
        workers.stop()
        leadership.release()
    return 0


def _loops(
    kube: Kube, metrics: Metrics, asked: argparse.Namespace, limits: Timeouts
) -> Callable[[Key], Reconciler]:
    images = Images(asked.runtime_image, asked.spark_image, asked.runtime_image)
    settings = OperatorSettings(images, asked.own_namespace, limits)
    nodes = Nodes(kube)
    return lambda key: Reconciler(key, ReconcilerPorts(kube, Asked(), nodes.at, metrics), settings)


async def _watch(workers: Workers, asked: argparse.Namespace) -> None:
    """Watch resources and pods until a signal comes."""
    login: Callable[..., Any] = kopf.login_with_service_account
    if asked.kubeconfig is not None:
        login = kopf.login_with_kubeconfig
    await kopf.operator(
        registry=registry_of(workers.ask, login),
        settings=settings_of(),
        standalone=True,
        clusterwide=not asked.namespace,
        namespaces=asked.namespace,
    )


def _wait_for(leadership: Leadership) -> bool:
    """Wait while another operator acts; false if a signal came meanwhile."""
    with _on_signal(leadership.stop):
        return leadership.acquire()


def _wait_until_defined(kube: Kube, namespaces: Sequence[str]) -> bool:
    """Wait until pipelines can be listed; false if a signal came meanwhile."""
    stopped = threading.Event()
    with _on_signal(stopped.set):
        return wait_for_pipelines(kube, namespaces, stopped)


@contextmanager
def _on_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on SIGTERM within this context, instead of ending."""
    signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _lost() -> None:
    """Exit at once: another operator may act, so no turn under way here may continue."""
    _log.error("leader election lost")
    logging.shutdown()
    os._exit(1)


def _parser() -> argparse.ArgumentParser:
    environment = os.environ
    name, uid = (
        environment.get(POD_NAME_VARIABLE, "operator"),
        environment.get(POD_UID_VARIABLE, ""),
    )
    parser = argparse.ArgumentParser(prog="tandem-operator", description=__doc__)
    parser.add_argument("--runtime-image", required=True, help="image of new splits and merges")
    parser.add_argument("--spark-image", required=True, help="image of new Spark drivers")
    parser.add_argument(
        "--namespace",
        action="append",
        default=[],
        help="namespace to watch; may be repeated (default: all namespaces)",
    )
    parser.add_argument("--kubeconfig", help="kubeconfig (default: the pod's service account)")
    parser.add_argument("--port", type=int, default=8080, help="port of /metrics and /healthz")
    parser.add_argument("--workers", type=int, default=4, help="pipelines to reconcile in parallel")
    add_timeouts(parser)
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"]
    )
    parser.add_argument(
        "--own-namespace",
        default=environment.get(NAMESPACE_VARIABLE, "default"),
        help=f"namespace of the operator and its Lease (${NAMESPACE_VARIABLE})",
    )
    parser.add_argument(
        "--identity",
        default=f"{name}_{uid}" if uid else name,
        help=f"identity in leader election (${POD_NAME_VARIABLE}, ${POD_UID_VARIABLE})",
    )
    return parser


def write_logs(level: str) -> None:
    """Write logs to standard error; those of kopf from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("kopf").setLevel(logging.WARNING)


if __name__ == "__main__":
    raise SystemExit(main())

"""Pipelines keep to themselves: tokens, credentials, networks, security contexts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cluster.programs import KUBECTL, built
from cluster.steps import works
from cluster.trial.pods import Object, TrialPod
from cluster.trial.release import NAMESPACE, Release
from cluster.trial.space import MakeSpace, Space
from cluster.trial.waiting import until
from tests.cluster.e2e.flow import Flow, flowing
from tests.manifests.pod_security import violations

from tandem.kube.kinds import POD
from tandem_core.model.kubernetes_names import (
    FLIGHT_PORT,
    HTTP_PORT,
    PIPELINE_LABEL,
    intent_name,
    register_name,
    split_account,
    token_name,
)
from tandem_core.model.states import MemberKind, Role

PROBE = "probe"
ANSWERED = "answered"
REFUSED = "FlightUnauthenticatedError"
NOT_REACHED = {"FlightTimedOutError", "FlightUnavailableError"}
CREDENTIALS = "/var/run/secrets/kubernetes.io"

_CALL = f"""
import sys
import pyarrow as pa
from tandem_core.contract.records import encode
from tandem_core.network.flight_calls import call
try:
    call(sys.argv[1], {FLIGHT_PORT}, sys.argv[2], "around", encode(0))
    print("{ANSWERED}")
except pa.ArrowException as problem:
    print(type(problem).__name__)
"""
_ASK = f"""
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], {HTTP_PORT}, timeout=10)
connection.request("GET", "/state", headers={{"Authorization": "Bearer " + sys.argv[2]}})
print(connection.getresponse().status)
"""
_HAS_CREDENTIALS = f"import os; print(os.path.exists('{CREDENTIALS}'))"


@pytest.mark.timeout(900, func_only=True)
def test_pipelines_of_same_name_are_isolated_by_namespace(
    new_space: MakeSpace, release: Release
) -> None:
    here, elsewhere = new_space(), new_space()
    with flowing(here) as flow, flowing(elsewhere) as other:
        tokens_open_only_their_own_pipeline(flow, other, release)
        only_splits_have_credentials(flow)
        splits_may_touch_only_their_own(flow, elsewhere)
        pods_are_restricted(here, release)


def tokens_open_only_their_own_pipeline(flow: Flow, other: Flow, release: Release) -> None:
    own, foreign = flow.token(), other.token()
    assert own != foreign
    image = release.images["runtime"]
    # One has put on the pipeline's label, so that the network lets it through.
    labels = {PIPELINE_LABEL: flow.name}
    with probe_in(flow.space, image, labels), probe_in(other.space, image, {}):
        for pod in (flow.lead(), flow.replica("pair-0", Role.PRIMARY), flow.active_merge()):
            for token in (foreign, ""):
                assert probe(flow.space, _CALL, pod, token) == REFUSED, pod
                assert probe(flow.space, _ASK, pod, token) == "401", pod
            assert probe(flow.space, _ASK, pod, own) == "200"
            assert probe(other.space, _ASK, pod, own) == "200"
            assert probe(other.space, _CALL, pod, own) in NOT_REACHED
        assert probe(flow.space, _CALL, flow.lead(), own) == ANSWERED


@contextmanager
def probe_in(space: Space, image: str, labels: dict[str, str]) -> Iterator[None]:
    """A pod that does nothing, as restricted as all others."""
    container = {
        "name": PROBE,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", "import signal; signal.pause()"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "resources": {"requests": {"memory": "256Mi"}, "limits": {"memory": "256Mi"}},
    }
    space.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": PROBE, "labels": labels},
            "spec": {
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 10001,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container],
            },
        }
    )
    try:
        until(lambda: is_running(space), 60, "the probe runs")
        yield
    finally:
        space.kubectl("delete", "pod", PROBE)


def is_running(space: Space) -> bool:
    status: Object = space.api.get(POD, space.name, PROBE)["status"]
    return bool(status["phase"] == "Running")


def probe(space: Space, program: str, pod: TrialPod, token: str) -> str:
    """What a program in the probe prints that is told a pod's address and a token."""
    return space.execute(PROBE, "python", "-c", program, str(pod.address), token)


def only_splits_have_credentials(flow: Flow) -> None:
    for pod in (pod for pod in flow.pods() if pod.kind):
        found = flow.space.execute(pod.name, "python", "-c", _HAS_CREDENTIALS)
        assert found == str(pod.kind == MemberKind.SPLIT), pod


def splits_may_touch_only_their_own(flow: Flow, elsewhere: Space) -> None:
    allowed = [
        ("list", "pods"),
        ("get", f"configmap/{intent_name(flow.name)}"),
        ("get", f"lease/{register_name(flow.name)}"),
        ("update", f"lease/{register_name(flow.name)}"),
    ]
    forbidden = [
        ("delete", "pods"),
        ("get", f"secret/{token_name(flow.name)}"),
        ("list", "configmaps"),
        ("update", f"configmap/{intent_name(flow.name)}"),
        ("update", "lease/of-another-pipeline"),
        ("get", f"streampipeline/{flow.name}"),
    ]
    for verb, what in allowed:
        assert may(flow, flow.space.name, verb, what), (verb, what)
        assert not may(flow, elsewhere.name, verb, what), (verb, what)
    for verb, what in forbidden:
        assert not may(flow, flow.space.name, verb, what), (verb, what)


def may(flow: Flow, namespace: str, verb: str, what: str) -> bool:
    """Whether the account of a pipeline's splits may do something in a namespace."""
    account = f"system:serviceaccount:{flow.space.name}:{split_account(flow.name)}"
    asked = ["--namespace", namespace, "auth", "can-i", verb, what, f"--as={account}"]
    return works([built(KUBECTL), *asked], env=flow.space.cluster.env)


def pods_are_restricted(space: Space, release: Release) -> None:
    pods = [*space.api.list(POD, space.name), *release.api.list(POD, NAMESPACE)]
    assert pods
    for pod in pods:
        assert violations(pod["spec"]) == [], pod["metadata"]["name"]

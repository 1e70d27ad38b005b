"""What is read from a pod's document."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tandem.control.pods import member_of, read_pod
from tandem.control.types import Instant
from tandem.kube.kinds import Object
from tandem.policy.recovery.processes import UNEXPLAINED
from tandem.policy.snapshot import Complaint, Life, MemberSnapshot
from tandem_core.contract.reports import DriverState, MemberReport, ReplicaState
from tandem_core.model.pipeline import parse_status
from tandem_core.model.states import MemberKind
from tandem_core.model.status import Status
from tandem_core.network.member_client import Observation

WALL = datetime(2024, 5, 1, 12, tzinfo=UTC)
MOMENT = Instant(1000.0, WALL)
RUNNING = {"running": {"startedAt": "2024-05-01T11:59:50Z"}}
FULL = ReplicaState(DriverState.RUNNING, committed=5, verified=True)
HEARD = Observation(heard=999.0, report=MemberReport("u1.0", 1, FULL))


def ago(seconds: float) -> str:
    return f"{WALL - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def terminated(code: int, message: str = "", **more: Any) -> Object:
    return {
        "terminated": {
            "exitCode": code,
            "message": message,
            "startedAt": ago(30),
            "finishedAt": ago(20),
            **more,
        }
    }


def pod(
    state: Object | None = None,
    last: Object | None = None,
    *,
    labels: Object | None = None,
    restarts: int = 0,
    started: bool = True,
    **status: Any,
) -> Object:
    container = {
        "name": "replica",
        "restartCount": restarts,
        "started": started,
        "state": state or {},
        "lastState": last or {},
    }
    sidecar = {"name": "sidecar", "restartCount": 77, "state": RUNNING}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "shop",
            "uid": "u1",
            "labels": labels or {"tandem.dev/kind": "replica", "tandem.dev/pair": "pair-0"},
            "annotations": {"tandem.dev/applied": "mark"},
        },
        "spec": {"nodeName": "n0", "containers": [{"name": "replica"}, {"name": "sidecar"}]},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "containerStatuses": [sidecar, container] if state is not None else [],
            **status,
        },
    }


def member(document: Object, look: Observation = HEARD, **more: Any) -> MemberSnapshot:
    found = read_pod(document)
    assert found is not None
    given = {"volumes": (), "hosts": frozenset[str](), "template": "mark", **more}
    return member_of(found, look, MOMENT, **given)


BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 40s"}
SILENT = Observation(silent_since=990.0)


@pytest.mark.parametrize(
    ("document", "look", "life"),
    [
        (pod(phase="Pending"), Observation(), Life.STARTING),
        (pod({"waiting": {"reason": "ContainerCreating"}}), Observation(), Life.STARTING),
        (pod(RUNNING, started=False), Observation(), Life.STARTING),
        (pod(RUNNING, started=False), SILENT, Life.STARTING),
        # Its probe says that it was up, but it has not been asked yet.
        (pod(RUNNING), Observation(), Life.STARTING),
        (pod(RUNNING), SILENT, Life.UP),
        (pod(RUNNING, started=False), HEARD, Life.UP),
        (pod(terminated(1)), HEARD, Life.ENDED),
        (pod({"waiting": {"reason": "CrashLoopBackOff"}}, terminated(1)), HEARD, Life.ENDED),
        (pod(RUNNING, terminated(1), restarts=1), HEARD, Life.UP),
        (pod(RUNNING, phase="Failed"), HEARD, Life.ENDED),
    ],
)
def test_pod_status_maps_to_life(document: Object, look: Observation, life: Life) -> None:
    assert member(document, look).life is life


@pytest.mark.parametrize(("code", "expected"), [(1, 1), (3, 3), (137, -9), (143, -15), (0, 0)])
def test_exit_code_above_128_is_signal(code: int, expected: int) -> None:
    ended = member(pod({"waiting": {"reason": "CrashLoopBackOff"}}, terminated(code), restarts=4))
    assert (ended.exit_code, ended.run) == (expected, 4)
    assert (ended.started, ended.ended) == (970.0, 980.0)
    again = member(pod(RUNNING, terminated(code), restarts=4))
    assert (again.exit_code, again.ended, again.started) == (None, None, 990.0)


def test_complaint_is_kept_while_container_restarts() -> None:
    why = {"reason": "UnknownColumn", "message": "there is none", "hint": "look"}
    ended = terminated(3, json.dumps(why))
    expected = Complaint("UnknownColumn", "there is none", "look")
    assert member(pod(ended)).complaint == expected
    assert member(pod(RUNNING, ended)).complaint == expected
    assert member(pod(terminated(1, json.dumps(why)))).complaint is None
    for nonsense in ("", "{", "[1]", '{"reason": "x"}'):
        assert member(pod(terminated(3, nonsense))).complaint == UNEXPLAINED


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("My_Error", "MyError"),
        ("mod.sub-error 2", "ModSubError2"),
        ("2nd Error", "ndError"),
        ("Größe", "GrE"),
        ("_", UNEXPLAINED.reason),
        ("", UNEXPLAINED.reason),
        ("X" * 2000, "X" * 1024),
        ("DivideByZero", "DivideByZero"),
    ],
)
def test_complaint_reason_becomes_valid_condition_reason(said: str, reason: str) -> None:
    why = {"reason": said, "message": "it failed", "hint": ""}
    found = member(pod(terminated(3, json.dumps(why)))).complaint
    assert found == Complaint(reason, "it failed")
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": "2024-05-01T12:00:00Z"}
    status = {"conditions": [condition | {"reason": reason}]}
    assert isinstance(parse_status(status), Status)


def test_report_from_another_pod_at_same_address_is_ignored() -> None:
    foreign = Observation(heard=999.0, report=MemberReport("u2.0", 1, FULL))
    found = member(pod(RUNNING, started=False), foreign)
    assert (found.report, found.life, found.volume) == (None, Life.STARTING, "u1.0")


def test_silent_pod_is_on_its_newest_known_volume() -> None:
    known = ("u1.0", "u1.2", "u2.7", "something")
    assert member(pod(RUNNING), Observation(), volumes=known).volume == "u1.2"
    assert member(pod(RUNNING), Observation()).volume == "u1.0"
    assert member(pod(RUNNING), HEARD, volumes=known).volume == "u1.0"


def test_note_carries_kubernetes_reason_and_message() -> None:
    unscheduled = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    ]
    for document, note in (
        (pod(phase="Pending", conditions=unscheduled), "Unschedulable: full"),
        (pod({"waiting": {"reason": "ImagePullBackOff"}}), "ImagePullBackOff"),
        (pod(RUNNING, phase="Failed", reason="Evicted", message="disk"), "Evicted: disk"),
        (pod(terminated(137, reason="OOMKilled")), "OOMKilled: out of memory"),
        (
            pod({"waiting": BACK_OFF}, terminated(137, reason="OOMKilled")),
            "OOMKilled: out of memory; CrashLoopBackOff: back-off 40s",
        ),
        (pod({"waiting": BACK_OFF}, terminated(1)), "CrashLoopBackOff: back-off 40s"),
        (pod({"waiting": {"reason": "ContainerCreating"}}), ""),
        (pod(RUNNING, terminated(137, reason="OOMKilled")), ""),
        (pod(RUNNING), ""),
    ):
        assert member(document).note == note


def test_volume_exists_until_pod_has_failed() -> None:
    assert member(pod(RUNNING)).volume_there
    assert not member(pod(RUNNING, phase="Failed")).volume_there


def test_pod_of_older_template_is_outdated() -> None:
    assert not member(pod(RUNNING)).outdated
    assert member(pod(RUNNING), template="newer").outdated
    assert not member(pod(RUNNING), template=None).outdated


def test_labels_determine_member_place() -> None:
    merge = read_pod(pod(RUNNING, labels={"tandem.dev/kind": "merge", "tandem.dev/slot": "1"}))
    assert merge is not None
    assert (merge.place.kind, merge.place.slot, merge.place.pair) == (MemberKind.MERGE, 1, None)
    spare = read_pod(pod(RUNNING, labels={"tandem.dev/kind": "spare"}))
    assert spare is not None
    assert spare.place.kind is MemberKind.SPARE
    assert read_pod(pod(RUNNING, labels={"tandem.dev/kind": "?"})) is None
    assert read_pod(pod(RUNNING, labels={"app": "other"})) is None


def test_only_reachable_pods_are_polled() -> None:
    going = pod(RUNNING)
    going["metadata"]["deletionTimestamp"] = ago(1)
    for document, expected in (
        (pod(RUNNING), True),
        (pod(RUNNING, podIP=None), False),
        (pod(RUNNING, phase="Failed"), False),
        (going, False),
    ):
        found = read_pod(document)
        assert found is not None
        assert found.can_be_asked is expected


def test_server_times_convert_to_own_clock_and_never_lie_ahead() -> None:
    assert MOMENT.of(ago(30)) == 970.0
    assert MOMENT.of(ago(-30)) == 1000.0
    assert MOMENT.of("2024-05-01T11:59:59.5Z") == 999.5
    assert MOMENT.of(None) is None

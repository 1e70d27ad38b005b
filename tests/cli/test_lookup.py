"""Commands about pipelines that run here, rest here, or run on a cluster."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.control.world import KEY
from tests.kube.cluster import Cluster
from tests.kube.server import serving
from tests.local.pipelines import pipeline
from tests.remote.stage import Stage

from tandem.kube import user
from tandem.kube.kinds import STREAM_PIPELINE, ObjectKind
from tandem.kube.objects import name_of
from tandem.kube.port import KubeError, Refused, Unreachable
from tandem.kube.user import NoCluster, UserAccess
from tandem.local.store.directory import Directory, locked
from tandem.local.store.manifest import prepare
from tandem_cli import main


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The current kubeconfig names a cluster with one pipeline."""
    stage = Stage()

    def connect(context: str | None = None, namespace: str | None = None) -> UserAccess:
        if context not in {None, "test"}:
            raise NoCluster(f"no context {context}; there are test")
        return stage.access._replace(namespace=namespace or KEY.namespace)

    monkeypatch.setattr(user, "connect_user", connect)
    monkeypatch.chdir(tmp_path)
    return stage


@pytest.fixture
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def silent_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The current kubeconfig names a cluster, at this address, where nobody listens."""
    with serving(Cluster()) as gone:
        pass
    named = {
        "clusters": [{"name": "c", "cluster": {"server": gone.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "prod",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(named))
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.chdir(tmp_path)
    return gone.url


@pytest.fixture
def running(tmp_path: Path) -> Iterator[ExitStack]:
    """A pipeline runs here, in `.tandem/here`, until the stack is closed."""
    directory = Directory(tmp_path / ".tandem" / "here")
    with ExitStack() as stack:
        stack.enter_context(locked(directory))
        prepare(directory, pipeline(), tmp_path)
        yield stack


def forbid(stage: Stage, problem: KubeError, forbidden: ObjectKind, monkeypatch: object) -> None:
    assert isinstance(monkeypatch, pytest.MonkeyPatch)
    allowed = stage.cluster.list

    def answer(kind: ObjectKind, *arguments: object) -> object:
        if kind is forbidden:
            raise problem
        return allowed(kind, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.cluster, "list", answer)


def test_cluster_status_lists_pods_with_role_and_node(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == 0
    text = capsys.readouterr().out
    primary = stage.world.replicas("pair-0")["primary"]
    rows = [line.split() for line in text.splitlines()]
    expected = [name_of(primary), "primary", "Running", primary["spec"]["nodeName"]]
    assert any(row[-4:] == expected and "pair-0/primary" in row for row in rows)
    assert text.startswith("shop/spending on test  Running")


def test_json_status_has_members_with_nodes(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "spending", "-n", "shop", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["pairs"] == stage.world.resource()["status"]["pairs"]
    assert len(document["members"]) == 8
    replica = next(each for each in document["members"] if each["kind"] == "replica")
    assert replica.keys() >= {"name", "kind", "pair", "role", "node", "state"}
    assert "pid" not in replica or replica["pid"] is None


@pytest.mark.parametrize(
    ("command", "number"),
    [("kill", signal.SIGKILL), ("pause", signal.SIGSTOP), ("resume", signal.SIGCONT)],
)
def test_signal_is_sent_to_target_pod(stage: Stage, command: str, number: int) -> None:
    assert main([command, "pair-1/secondary", "-n", "shop"]) == 0
    secondary = name_of(stage.world.replicas("pair-1")["secondary"])
    assert stage.shell.signalled == [(secondary, number)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["status", "spendin"], 'did you mean "spending"'),
        (["status", "-n", "elsewhere"], "namespace elsewhere"),
        (["status", "--context", "prod"], "no cluster"),
        (["kill", "split-7"], "split-0, split-1"),
        (["kill", "split-0", "--pipeline", "spendin"], 'did you mean "spending"'),
        (["kill", "split-0", "--dir", "x", "-n", "shop"], "--dir"),
        (["status", "--dir", "nowhere"], "no pipeline in nowhere"),
    ],
)
def test_unknown_pipeline_cluster_or_target_is_reported(
    stage: Stage, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(arguments) == 1
    assert told in capsys.readouterr().err
    assert stage.shell.signalled == []


@pytest.mark.parametrize(
    ("problem", "told"),
    [(Refused("cannot list"), "denied the request"), (Unreachable("refused"), "does not answer")],
)
def test_silent_or_forbidding_cluster_is_reported(
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    problem: KubeError,
    told: str,
) -> None:
    forbid(stage, problem, STREAM_PIPELINE, monkeypatch)
    assert main(["status"]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["kill", "lead"]])
def test_unreachable_cluster_is_named_with_cause(
    silent_cluster: str, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "-n", "shop"]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("Connection refused")
    assert "prod" in said
    assert silent_cluster in said
    assert "retries" not in said
    assert main(command) == 1
    assert "no pipeline in .tandem" in capsys.readouterr().err


@pytest.mark.usefixtures("no_cluster")
def test_missing_pipeline_and_missing_cluster_are_both_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == 1
    said = capsys.readouterr().err
    assert "no pipeline in .tandem" in said
    assert f"no kubeconfig ({tmp_path / 'missing'})" in said


def test_forbidden_exec_is_reported(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.shell.fails = Refused("cannot create resource pods/exec")
    assert main(["kill", "split-0"]) == 1
    assert "pods/exec" in capsys.readouterr().err


@pytest.mark.usefixtures("stage")
def test_local_running_pipeline_takes_precedence(
    running: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith(".tandem/here")
    assert main(["status", "spending"]) == 0
    assert capsys.readouterr().out.startswith("shop/spending")
    running.close()
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith("shop/spending")
    assert main(["status", "--dir", ".tandem/here"]) == 0
    assert capsys.readouterr().out.startswith(".tandem/here")


def test_local_stopped_pipeline_is_found_if_cluster_lacks_it(
    stage: Stage,
    running: ExitStack,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running.close()
    assert main(["status", "here"]) == 0
    assert capsys.readouterr().out.startswith(".tandem/here")
    assert main(["status", "here", "-n", "shop"]) == 1
    forbid(stage, Unreachable("refused"), STREAM_PIPELINE, monkeypatch)
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith(".tandem/here")


@pytest.mark.usefixtures("no_cluster")
def test_local_stopped_pipeline_is_found_without_cluster(
    running: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    running.close()
    assert main(["status", "here"]) == 0
    assert "is not running" in capsys.readouterr().err
    assert main(["status", "there"]) == 1
    assert main(["status", "-n", "shop"]) == 1
    assert "no kubeconfig" in capsys.readouterr().err

import json

import pytest
from kubernetes.client.configuration import Configuration
from tests.kube.exec_server import ExecServer

from tandem.kube.exec import PodShell
from tandem.kube.kinds import Object
from tandem.kube.port import KubeError, NotFound, Ran, Refused, Unreachable

POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "spending-0", "namespace": "shop"},
    "spec": {"containers": [{"name": "replica"}, {"name": "sidecar"}]},
}
SUCCESS = (3, b'{"status": "Success"}')
FAILURE = (3, b'{"status": "Failure", "message": "exit code 3"}')


def shell(url: str) -> PodShell:
    configuration = Configuration(
        host=url,
        api_key={"BearerToken": "secret"},
        api_key_prefix={"BearerToken": "Bearer"},
    )
    configuration.proxy = None
    return PodShell(configuration)


def run(server: ExecServer) -> Ran:
    with server:
        return shell(server.url).run(POD, ["python", "-c", "a b&c"])


def test_a_command_runs_in_the_first_container() -> None:
    server = ExecServer([(1, b"7 "), (1, b"41\n"), SUCCESS])
    assert run(server) == Ran("7 41\n", "")
    assert server.path == "/api/v1/namespaces/shop/pods/spending-0/exec"
    assert [value for name, value in server.query if name == "command"] == ["python", "-c", "a b&c"]
    assert ("container", "replica") in server.query
    assert server.headers["authorization"] == "Bearer secret"


def test_long_output_is_read_completely() -> None:
    text = b"x" * 5000
    assert run(ExecServer([(1, text), (1, text), SUCCESS])).printed == "x" * 10_000


def test_failed_command_reports_its_stderr_or_exit_code() -> None:
    assert run(ExecServer([FAILURE])) == Ran("", "exit code 3")
    assert run(ExecServer([(2, b"no such file\n"), FAILURE])) == Ran("", "no such file")


def test_output_is_kept_when_connection_breaks() -> None:
    assert run(ExecServer([(1, b"7\n")], closes=False)) == Ran("7\n", "")


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, Refused), (401, Refused), (404, NotFound), (500, Unreachable), (429, Unreachable)],
)
def test_exec_refusal_raises_matching_error(status: int, error: type[KubeError]) -> None:
    body = json.dumps({"message": "cannot create resource pods/exec"}).encode()
    with pytest.raises(error, match="pods/exec"):
        run(ExecServer(status=status, body=body))


def test_refused_connection_raises_unreachable() -> None:
    with pytest.raises(Unreachable):
        shell("http://127.0.0.1:1").run(POD, ["true"])

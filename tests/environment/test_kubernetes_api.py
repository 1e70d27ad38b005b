import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.environment.fake_api import LEASES, PODS, TLS, TOKEN, FakeApi, lease, pod

from tandem_runtime.environment.kubernetes_api import (
    Access,
    ApiRefused,
    ApiSilent,
    Session,
    in_cluster_access,
)


def test_list_returns_selected_objects_and_resource_version(api: FakeApi, session: Session) -> None:
    api.put(PODS, pod("a"))
    api.put(PODS, pod("b", pipeline="other"))
    found = session.get(PODS, labelSelector="tandem.dev/pipeline=p")
    assert [each["metadata"]["uid"] for each in found["items"]] == ["a"]
    assert found["metadata"]["resourceVersion"] == "102"


def test_one_connection_serves_many_requests(api: FakeApi, session: Session) -> None:
    api.put(LEASES, lease())
    for _ in range(3):
        session.get(f"{LEASES}/p-register")
    assert api.count(f"GET {LEASES}/p-register") == 3


def test_put_conflicts_on_stale_version(api: FakeApi, session: Session) -> None:
    api.put(LEASES, lease())
    first = session.get(f"{LEASES}/p-register")
    stored = session.put(f"{LEASES}/p-register", {**first, "spec": {"holderIdentity": "a"}})
    assert int(stored["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    with pytest.raises(ApiRefused) as refusal:
        session.put(f"{LEASES}/p-register", {**first, "spec": {"holderIdentity": "b"}})
    assert refusal.value.status == 409
    assert api.get(LEASES, "p-register")["spec"] == {"holderIdentity": "a"}


@pytest.mark.parametrize(
    ("path", "tokens", "status"), [(f"{PODS}/x", {TOKEN}, 404), (PODS, {"another"}, 401)]
)
def test_refusal_carries_status_code(
    api: FakeApi, session: Session, path: str, tokens: set[str], status: int
) -> None:
    api.change(tokens=tokens)
    with pytest.raises(ApiRefused) as refusal:
        session.get(path)
    assert refusal.value.status == status


@pytest.mark.parametrize("status", [500, 503, 429])
def test_server_error_raises_api_silent(api: FakeApi, session: Session, status: int) -> None:
    api.change(failing=status)
    with pytest.raises(ApiSilent):
        session.get(PODS)
    api.change(failing=None)
    assert session.get(PODS)["items"] == []


def test_silent_server_times_out(api: FakeApi, session: Session) -> None:
    api.change(silent=True)
    with pytest.raises(ApiSilent):
        session.get(PODS)
    api.change(silent=False)
    assert session.get(PODS)["items"] == []


def test_lost_answer_raises_api_silent_although_change_was_made(
    api: FakeApi, session: Session
) -> None:
    api.put(LEASES, lease())
    found = session.get(f"{LEASES}/p-register")
    api.change(losing=1)
    with pytest.raises(ApiSilent):
        session.put(f"{LEASES}/p-register", {**found, "spec": {"holderIdentity": "a"}})
    assert session.get(f"{LEASES}/p-register")["spec"] == {"holderIdentity": "a"}


def test_rotated_token_is_reread(api: FakeApi, access: Access, session: Session) -> None:
    session.get(PODS)
    api.change(tokens={"renewed"})
    (access.credentials / "token").write_text("renewed\n")
    assert session.get(PODS)["items"] == []


def test_unreachable_server_or_missing_credentials_raise_api_silent(
    access: Access, api: FakeApi, tmp_path: Path
) -> None:
    closed = Access("127.0.0.1", 1, access.credentials)
    without = Access("127.0.0.1", api.port, tmp_path / "nothing")
    for unreachable in (closed, without):
        with pytest.raises(ApiSilent):
            Session(unreachable).get(PODS)


def test_unknown_certificate_authority_is_rejected(api: FakeApi, tmp_path: Path) -> None:
    with pytest.raises(ApiSilent) as silence:
        Session(api.access(tmp_path, TLS / "other.pem")).get(PODS)
    assert isinstance(silence.value.__cause__, ssl.SSLCertVerificationError)


def test_in_cluster_access_is_read_from_environment(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    way = in_cluster_access(tmp_path, environment)
    assert (way.host, way.port) == ("10.0.0.1", 443)
    assert way.credentials == tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"


# --- watches ------------------------------------------------------------------------------------


def test_watch_yields_events_until_it_ends(api: FakeApi, session: Session) -> None:
    api.put(PODS, pod("a"))
    events = session.watch(PODS, "101", labelSelector="tandem.dev/pipeline=p")
    steps: list[tuple[Callable[[], object], str]] = [
        (lambda: api.put(PODS, pod("b")), "ADDED"),
        (lambda: api.put(PODS, pod("b", phase="Failed")), "MODIFIED"),
        (lambda: api.put(PODS, pod("b", pipeline="other")), "DELETED"),
        (api.bookmark, "BOOKMARK"),
        (lambda: api.delete(PODS, "split-a"), "DELETED"),
    ]
    for step, kind in steps:
        step()
        assert next(events)[0] == kind
    api.change(ended=1)
    assert list(events) == []


def test_watch_from_expired_version_is_refused(api: FakeApi, session: Session) -> None:
    api.put(PODS, pod("a"))
    api.forget()
    with pytest.raises(ApiRefused) as refusal:
        list(session.watch(PODS, "100"))
    assert refusal.value.status == 410


def test_open_watch_can_expire(api: FakeApi, session: Session) -> None:
    events = session.watch(PODS, "100")
    api.put(PODS, pod("a"))
    assert next(events)[0] == "ADDED"
    api.change(held=True)
    api.put(PODS, pod("b"))
    api.forget()
    api.change(held=False)
    with pytest.raises(ApiRefused) as refusal:
        next(events)
    assert refusal.value.status == 410


def test_broken_watch_ends(api: FakeApi, session: Session) -> None:
    events = session.watch(PODS, "100")
    api.put(PODS, pod("a"))
    next(events)
    api.change(cut=1)
    with suppress(ApiSilent):
        assert list(events) == []


def test_connection_has_keepalive_and_user_timeout(session: Session) -> None:
    session.get(PODS)
    assert session._connection is not None
    connected = session._connection.sock
    assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000

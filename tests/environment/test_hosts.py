import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.environment.pods_around import mount
from tests.local.harness import wait_for
from tests.repeatable import thorough

from tandem_core.contract.exit_codes import COMPLETED, FAILED, REFUSED, WIPED
from tandem_core.contract.reports import MemberRefusal, decode_refusal, encode_report
from tandem_runtime.environment.hosts import MOST_LAST_WORDS, PodHost, termination_message
from tandem_runtime.environment.pod_identity import PodIdentity, this_pod
from tandem_runtime.environment.pod_without_api import ThroughSplits

REFUSAL = MemberRefusal(reason="QueryRefused", message="no", hint="change it")


@pytest.fixture
def pod(tmp_path: Path) -> PodIdentity:
    return mount(tmp_path, "m", "merge")


def home_of(pod: PodIdentity) -> PodHost[ThroughSplits]:
    return PodHost(pod, lambda pod, _: ThroughSplits(pod))


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands that the process would have become."""
    commands: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda *command: commands.append(command))
    return commands


def test_pod_identity_is_read_from_environment() -> None:
    environment = {
        "TANDEM_POD_NAME": "n",
        "TANDEM_POD_UID": "u",
        "TANDEM_NAMESPACE": "s",
        "TANDEM_NODE": "w",
        "TANDEM_POD_IP": "10.1.2.3",
    }
    found = this_pod(environment)
    assert found == PodIdentity("n", "u", "s", "w", "10.1.2.3", Path("/"))
    assert str(found.document) == "/tandem/pipeline/pipeline.json"
    assert str(found.token) == "/tandem/secret/token"
    assert str(found.home) == "/tandem/volume"
    assert str(found.termination_log) == "/dev/termination-log"
    assert this_pod({**environment, "TANDEM_ROOT": "/x"}).home == Path("/x/tandem/volume")


def test_pod_listens_on_all_addresses(pod: PodIdentity) -> None:
    assert home_of(pod).listen == ("0.0.0.0", 7070, 7080)  # noqa: S104 - the pod's own
    assert home_of(pod._replace(host="fd00::7")).listen == ("::", 7070, 7080)


def test_process_with_wiped_volume_restarts_on_next_volume(
    pod: PodIdentity, restarted: list[Any]
) -> None:
    for number in range(3):
        home = home_of(pod)
        assert home.volume.id == f"m.{number}"
        home.volume.claim()
        home.leave(WIPED)
        home.volume.release()
    assert restarted == [(sys.executable, [sys.executable, *sys.orig_argv[1:]])] * 3


def test_refusal_is_written_to_termination_log(pod: PodIdentity, restarted: list[Any]) -> None:
    home = home_of(pod)
    home.volume.claim()
    home.volume.refuse(REFUSAL)
    assert home.leave(REFUSED) == REFUSED
    home.volume.release()
    assert decode_refusal(pod.termination_log.read_text()) == REFUSAL
    assert restarted == []


@pytest.mark.parametrize("code", [0, FAILED])
def test_other_exit_codes_leave_termination_log_empty(
    pod: PodIdentity, restarted: list[Any], code: int
) -> None:
    home = home_of(pod)
    home.volume.claim()
    home.volume.refuse(REFUSAL)
    assert home.leave(code) == code
    home.volume.release()
    assert pod.termination_log.read_text() == ""
    assert restarted == []


@thorough(40)
@given(
    message=st.text(max_size=50) | st.text(max_size=20).map(lambda text: text * 400),
    hint=st.text(max_size=20) | st.text(min_size=1, max_size=9).map(lambda text: text * 999),
)
def test_termination_message_is_truncated_only_beyond_limit(message: str, hint: str) -> None:
    whole = MemberRefusal(reason="R", message=message, hint=hint)
    text = termination_message(whole)
    assert len(text.encode()) <= MOST_LAST_WORDS
    told = decode_refusal(text)
    assert told.reason == "R"
    assert message.startswith(told.message)
    assert hint.startswith(told.hint)
    assert told == whole or len(encode_report(whole)) > MOST_LAST_WORDS


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_completed_pod_rests_until_sigterm(pod: PodIdentity) -> None:
    before = signal.getsignal(signal.SIGTERM)
    asked = threading.Event()

    def ask() -> None:
        wait_for(lambda: signal.getsignal(signal.SIGTERM) is not before)
        asked.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=ask, daemon=True).start()
    assert home_of(pod).rest(COMPLETED) == 0
    assert asked.is_set()

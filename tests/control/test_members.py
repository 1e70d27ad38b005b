"""Asking pods over the network."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.control.test_pods import RUNNING, pod
from tests.local.harness import wait_for

from tandem.control import members
from tandem.control.members import Asked
from tandem.control.pods import Pod, read_pod
from tandem_core.contract.reports import MemberReport, SplitState, encode_report

REPORT = encode_report(MemberReport("u1.0", 2, SplitState()))


class Answering:
    """A process that answers whoever has the token."""

    def __init__(self) -> None:
        asked, self.well = self, True

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = asked.well and self.headers["Authorization"] == "Bearer t"
                self.send_response(200 if allowed else 401)
                self.end_headers()
                self.wfile.write(REPORT)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Answers)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    made = Answering()
    monkeypatch.setattr(members, "HTTP_PORT", made.port)
    monkeypatch.setattr(members, "FLIGHT_PORT", 1)
    yield made
    made.stop()


def a_pod(restarts: int = 0) -> Pod:
    found = read_pod(pod(RUNNING, restarts=restarts, podIP="127.0.0.1"))
    assert found is not None
    return found


def test_pods_are_polled_until_they_are_gone(process: Answering) -> None:
    asked = Asked()
    asked.look([a_pod()], "t")
    wait_for(lambda: asked.look([a_pod()], "t")[a_pod().run].heard is not None)
    look = asked.look([a_pod()], "t")[a_pod().run]
    assert look.report is not None
    assert (look.report.volume, look.report.incarnation) == ("u1.0", 2)
    # The process that is started again is another one, and has not said anything yet.
    process.well = False
    again = asked.look([a_pod(restarts=1)], "t")
    assert list(again) == [("u1", 1)]
    assert again["u1", 1].heard is None
    assert asked.look([], "t") == {}


@pytest.mark.usefixtures("process")
def test_pod_can_be_queried_immediately() -> None:
    report = Asked().ask(a_pod(), "t")
    assert report is not None
    assert report.volume == "u1.0"
    assert Asked().ask(a_pod(), "wrong") is None
    gone = read_pod(pod(RUNNING, phase="Failed", podIP="127.0.0.1"))
    assert gone is not None
    assert Asked().ask(gone, "t") is None


@pytest.mark.usefixtures("process")
def test_assigning_an_unreachable_spare_raises() -> None:
    with pytest.raises(OSError, match="Flight"):
        Asked().assign(a_pod(), "t", "pair-0")

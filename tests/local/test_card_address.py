import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from tests.local.harness import wait_for

from tandem.local.processes.process_manager import by_card
from tandem_core.contract.reports import Card, MemberReport, SplitState, encode_report
from tandem_core.network.member_client import Address, MemberPoller, ask

PID = 4711
WORD = "open sesame"
REPORT = encode_report(MemberReport("v", 1, SplitState()))


class Member:
    """Answers as it is told to."""

    def __init__(self, card: Path) -> None:
        member = self
        self.health, self.body = 200, REPORT

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.headers["Authorization"] == f"Bearer {WORD}"
                well = member.health if self.path == "/healthz" else 200
                self.send_response(well if known else 401)
                self.end_headers()
                self.wfile.write(member.body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.card = card
        self.announce(PID)

    def announce(self, pid: int) -> None:
        port = self.server.server_address[1]
        own = ("split-0", "split", None, "v", 1)
        card = Card(*own, host="127.0.0.1", port=port, http_port=port, pid=pid)
        self.card.write_bytes(encode_report(card))

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    made = Member(tmp_path / "v.json")
    yield made
    made.stop()


@pytest.fixture
def watch(member: Member) -> Iterator[MemberPoller]:
    made = MemberPoller("v", by_card(member.card, PID), WORD)
    yield made
    made.stop()


def test_answer_is_parsed_as_report(watch: MemberPoller) -> None:
    wait_for(lambda: watch.look().heard is not None)
    look = watch.look()
    assert look.report is not None
    assert (look.report.volume, look.report.incarnation) == ("v", 1)
    assert look.silent_since is None


@pytest.mark.parametrize(("health", "body"), [(503, None), (200, b"{"), (200, b"[1]")])
def test_unhealthy_member_counts_as_silent(
    member: Member, watch: MemberPoller, health: int, body: bytes | None
) -> None:
    wait_for(lambda: watch.look().heard is not None)
    member.health, member.body = health, body or member.body
    wait_for(lambda: watch.look().silent_since is not None)
    since = watch.look().silent_since
    assert watch.look().report is not None
    member.health, member.body = 200, REPORT
    wait_for(lambda: watch.look().silent_since is None)
    heard = watch.look().heard
    assert heard is not None
    assert since is not None
    assert heard > since


def has_counted(least: float) -> bool:
    return unreadable() >= least


def unreadable() -> float:
    return REGISTRY.get_sample_value("tandem_operator_unreadable_reports_total") or 0


def test_unreadable_answer_is_silence_counted_always_and_logged_once(
    member: Member, watch: MemberPoller, caplog: pytest.LogCaptureFixture
) -> None:
    for times in (1, 2):
        wait_for(lambda: watch.look().silent_since is None and watch.look().heard is not None)
        twice = unreadable() + 2
        member.body = REPORT.replace(b'"split"', b'"oracle"')
        wait_for(partial(has_counted, twice))
        assert watch.look().silent_since is not None
        warnings = [record.getMessage() for record in caplog.records]
        assert len(warnings) == times
        assert "oracle" in warnings[-1]
        member.body = REPORT


def test_single_query_returns_none_for_unreadable_answer(member: Member) -> None:
    address = Address("127.0.0.1", member.server.server_address[1])
    assert ask(address, WORD) is not None
    before = unreadable()
    member.body = b"{}"
    assert ask(address, WORD) is None
    assert unreadable() == before + 1


def test_card_of_another_process_is_ignored(tmp_path: Path) -> None:
    member = Member(tmp_path / "v.json")
    member.announce(PID + 1)
    watch = MemberPoller("v", by_card(member.card, PID), WORD)
    missing = MemberPoller("missing", by_card(tmp_path / "missing.json", PID), WORD)
    member.announce(PID)
    wait_for(lambda: watch.look().heard is not None)
    assert missing.look().heard is None
    for each in (watch, missing):
        each.stop()
    member.stop()

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.local.harness import wait_for

from tandem.local.observe import by_card
from tandem.watch import Watch

PID = 4711
WORD = "open sesame"


class Member:
    """Answers as it is told to."""

    def __init__(self, card: Path) -> None:
        member = self
        self.health, self.body = 200, b'{"volume": "v", "incarnation": 1}'

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
        self.card.write_text(json.dumps({"pid": pid, "host": "127.0.0.1", "http_port": port}))

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    made = Member(tmp_path / "v.json")
    yield made
    made.stop()


@pytest.fixture
def watch(member: Member) -> Iterator[Watch]:
    made = Watch("v", by_card(member.card, PID), WORD)
    yield made
    made.stop()


def test_an_answer_is_a_report(watch: Watch) -> None:
    wait_for(lambda: watch.look().heard is not None)
    look = watch.look()
    assert look.report is not None
    assert (look.report.volume, look.report.incarnation) == ("v", 1)
    assert look.silent_since is None


@pytest.mark.parametrize(("health", "body"), [(503, None), (200, b"{"), (200, b"[1]")])
def test_a_member_that_is_not_well_counts_as_silent(
    member: Member, watch: Watch, health: int, body: bytes | None
) -> None:
    wait_for(lambda: watch.look().heard is not None)
    member.health, member.body = health, body or member.body
    wait_for(lambda: watch.look().silent_since is not None)
    since = watch.look().silent_since
    assert watch.look().report is not None
    member.health, member.body = 200, b'{"volume": "v"}'
    wait_for(lambda: watch.look().silent_since is None)
    heard = watch.look().heard
    assert heard is not None
    assert since is not None
    assert heard > since


def test_the_card_of_another_process_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    member = Member(tmp_path / "v.json")
    member.announce(PID + 1)
    watch = Watch("v", by_card(member.card, PID), WORD)
    missing = Watch("missing", by_card(tmp_path / "missing.json", PID), WORD)
    member.announce(PID)
    wait_for(lambda: watch.look().heard is not None)
    assert missing.look().heard is None
    for each in (watch, missing):
        each.stop()
    member.stop()

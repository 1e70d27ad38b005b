"""A member that only looks like one: answers `/state`, keeps a little on its volume, obeys signals.

Usage: stub_member.py DIR NAME KIND PAIR VOLUME. What else it should do stands in files in DIR/stub:
`NAME.do` holds `exit CODE`, `refuse`, `stubborn` or `unwell`; `completed` ends everybody.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tandem_core.contract.intent_text import read_intent_text
from tandem_core.contract.reports import (
    REFUSAL_FILE,
    Card,
    DriverState,
    LeadReport,
    MemberReport,
    MergeState,
    PairReport,
    ReplicaState,
    SeatReport,
    SinkReport,
    SplitState,
    encode_report,
)
from tandem_core.model.states import SeatState, SinkClass

STEP = 0.05
LAUNCHER = Path(__file__).parents[2] / "operator/tandem/local/processes/launch.py"


class Stub:
    def __init__(self, directory: Path, name: str, kind: str, pair: str, volume: str) -> None:
        self.directory, self.name, self.kind, self.pair = directory, name, kind, pair
        self.volume = volume
        self.home = directory / "volumes" / volume
        self.shared = directory / "stub"
        self.shared.mkdir(exist_ok=True)
        starts = self.home / "incarnation"
        self.incarnation = int(starts.read_text()) + 1 if starts.exists() else 1
        starts.write_text(str(self.incarnation))
        self.well = True
        self.leads = False
        self.completed_at: float | None = None
        self.started = time.monotonic()
        self.lead_lock = os.open(self.shared / "lead.lock", os.O_CREAT | os.O_RDWR)

    # --- what it does -------------------------------------------------------------------------

    def live(self) -> None:
        while True:
            self.obey()
            if self.kind == "split" and not self.leads:
                self.try_to_lead()
            if self.kind == "replica":
                self.join()
                self.write_heartbeat()
            time.sleep(STEP)

    def obey(self) -> None:
        order = self.shared / f"{self.name}.do"
        if order.exists():
            what = order.read_text().split()
            if what[0] == "stubborn":
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            order.unlink()
            if what[0] == "exit":
                os._exit(int(what[1]))
            if what[0] == "refuse":
                why = {"reason": "Broken", "message": "the query divides by zero", "hint": "do not"}
                (self.home / REFUSAL_FILE).write_text(json.dumps(why))
                os._exit(3)
            self.well = what[0] != "unwell"
        if (self.shared / "completed").exists():
            self.completed_at = self.completed_at or time.monotonic()
            if time.monotonic() - self.completed_at > 1.5:
                os._exit(20)

    def try_to_lead(self) -> None:
        try:
            fcntl.flock(self.lead_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        self.leads = True
        term = self.shared / "term"
        term.write_text(str(int(term.read_text()) + 1 if term.exists() else 1))

    def join(self) -> None:
        """Hold the state if the pair never had any, or after a copy from a living twin."""
        verified, formed = self.home / "verified", self.shared / f"formed-{self.pair}"
        if verified.exists() or not self.pair or time.monotonic() - self.started < 0.4:
            return
        twins = [s for s in heartbeats(self.shared) if s["pair"] == self.pair and s["verified"]]
        if not formed.exists() or any(not is_old(twin) for twin in twins):
            formed.touch()
            verified.touch()

    def write_heartbeat(self) -> None:
        content = {
            "volume": self.volume,
            "pair": self.pair,
            "verified": (self.home / "verified").exists(),
            "at": time.monotonic(),
        }
        target = self.shared / f"{self.volume}.beat"
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(content))
        draft.replace(target)

    # --- what it says -------------------------------------------------------------------------

    def report(self) -> MemberReport:
        return MemberReport(self.volume, self.incarnation, self.part(), name=self.name)

    def part(self) -> SplitState | MergeState | ReplicaState:
        if self.kind == "split":
            return SplitState(lead=self.lead() if self.leads else None)
        if self.kind == "merge":
            sinks = (SinkReport("out", SinkClass.TRANSACTIONAL, position=5),)
            return MergeState(active=self.name == "merge-0", rows_out=70, sinks=sinks)
        verified = (self.home / "verified").exists()
        warm = DriverState.JOINING if self.pair else DriverState.SPARE
        doing = DriverState.RUNNING if verified else warm
        return ReplicaState(doing, committed=5, verified=verified)

    def lead(self) -> LeadReport:
        pairs: dict[str, list[SeatReport]] = {}
        slots = tuple(range(read_intent_text((self.directory / "intent").read_bytes()).slots))
        gone = {path.name for path in (self.directory / "gone").iterdir()}
        for beat in heartbeats(self.shared):
            if beat["volume"] not in gone and beat["pair"]:
                pairs.setdefault(beat["pair"], []).append(
                    SeatReport(
                        volume=beat["volume"],
                        state=SeatState.VERIFIED if beat["verified"] else SeatState.JOINING,
                        committed=5,
                        synced=beat["verified"],
                        silent=is_old(beat),
                    )
                )
        return LeadReport(
            term=int((self.shared / "term").read_text()),
            epoch=6,
            delivered=5,
            generation=1,
            rows_in=100,
            pairs=tuple(PairReport(name, tuple(seats)) for name, seats in pairs.items()),
            completed=self.completed_at is not None,
            open_slots=slots,
            next_slot=len(slots),
        )

    def serve(self) -> None:
        stub = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = encode_report(stub.report())
                self.send_response(200 if stub.well or self.path != "/healthz" else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        own = (self.name, self.kind, self.pair, self.volume, self.incarnation)
        card = Card(*own, host="127.0.0.1", port=port, http_port=port, pid=os.getpid())
        target = self.directory / "peers" / f"{self.volume}.json"
        draft = target.with_name(f".{self.volume}")
        draft.write_bytes(encode_report(card))
        draft.replace(target)


def heartbeats(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(shared.glob("*.beat"))]


def is_old(beat: dict[str, Any]) -> bool:
    return bool(time.monotonic() - beat["at"] > 0.6)


def main() -> None:
    directory, name, kind, pair, volume = sys.argv[1:6]
    stub = Stub(Path(directory), name, kind, pair, volume)
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if kind == "replica":
        # Stands for the JVM: it dies with its parent only because it asked for that.
        helper = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), "/bin/sleep", "600"]
        subprocess.Popen(helper)
    stub.serve()
    if kind == "spare":
        wait_for_assignment(stub)
    stub.live()


def wait_for_assignment(stub: Stub) -> None:
    given = stub.shared / f"{stub.volume}.pair"
    while not given.exists():
        stub.obey()
        time.sleep(STEP)
    stub.kind, stub.pair, stub.started = "replica", given.read_text(), time.monotonic()


if __name__ == "__main__":
    main()

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.manifests.orders import manifest
from tests.services.asking import get, report
from tests.services.test_event_loop import Around, Scripted

from tandem_core.contract.exit_codes import COMPLETED, RETIRED
from tandem_core.contract.reports import Card, MergeState
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_runtime.environment.hosts import ListenAddress
from tandem_runtime.protocol.effects import Effect, Exit
from tandem_runtime.protocol.messages.peers import TakeLead
from tandem_runtime.protocol.types import Peer, ProtocolSettings
from tandem_runtime.services.event_loop import EventLoop
from tandem_runtime.services.process import LOOP_STUCK_MS, Process, main, settings_of
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel, Post


class Told(Around):
    """Surroundings that remember the card, and listen to one volume alone."""

    card: Card
    closed = False

    def announce(self, card: Card) -> None:
        self.card = card

    def admits(self, volume: str) -> bool:
        return volume == "friend"

    def close(self) -> None:
        self.closed = True


class Home:
    """A host that the test changes."""

    name, listen = "merge-0", ListenAddress("127.0.0.1")

    def __init__(self, directory: Path) -> None:
        self.volume = Volume(directory / "merge-0.a")
        self.around = Told()
        self.resting: Callable[[], None] = lambda: None
        self.rests_after: int | None = None

    def log_format(self, kind: str) -> logging.Formatter:
        return logging.Formatter(f"{kind}: %(message)s")

    def environment(self) -> Told:
        return self.around

    def rest(self, code: int) -> int:
        self.resting()
        self.rests_after = code
        return 17

    def leave(self, code: int) -> int:
        return code


class To:
    """Knows the one process there is."""

    def __init__(self, port: int) -> None:
        self._port = port

    def address_of(self, volume: str) -> tuple[str, int] | None:
        return "127.0.0.1", self._port

    def met(self, volume: str) -> None: ...


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    made = Home(tmp_path)
    yield made
    made.volume.release()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def loop_of(
    process: Process[Told], answer: Callable[[object], list[Effect]], ticks: int
) -> EventLoop:
    machine = Scripted(answer, ticks)
    return EventLoop(machine, process.volume, process.environment, process.post, process.settings)


def test_process_serves_state_before_it_has_machine(home: Home) -> None:
    process = Process("merge", home)
    process.serve(lambda: MergeState(active=True, slot=3), process.is_running)
    port = home.around.card.http_port
    assert get(port, "/healthz")[0] == 200
    assert get(port, "/readyz")[0] == 503
    told = report(port, "t")
    assert told is not None
    assert (told.name, told.volume, told.incarnation) == ("merge-0", "merge-0.a", 1)
    assert told.part == MergeState(active=True, slot=3)
    process._server.shutdown()


def test_partly_received_trees_of_former_process_are_deleted(home: Home) -> None:  # [12]
    left = home.volume.directory / "incoming" / "0"
    left.mkdir(parents=True)
    process = Process("replica", home)
    process.serve(MergeState, lambda: False)
    process.serve(MergeState, lambda: True, "pair-0")
    assert list(left.parent.iterdir()) == []
    process._server.shutdown()


def test_readiness_follows_last_serve_call(home: Home) -> None:
    process = Process("replica", home)
    process.serve(MergeState, lambda: False)
    port = home.around.card.http_port
    assert get(port, "/readyz")[0] == 503
    process.serve(MergeState, lambda: True, "pair-0")
    assert home.around.card == home.around.card.replace(pair="pair-0", http_port=port)
    assert get(port, "/readyz")[0] == 200
    process._server.shutdown()


def test_messages_of_unadmitted_peers_are_ignored(home: Home) -> None:
    process = Process("merge", home)
    process.serve(MergeState, process.is_running)
    heard: list[object] = []
    done = TakeLead(-1)

    def answer(message: object) -> list[Effect]:
        if isinstance(message, TakeLead):
            heard.append(message)
        return [Exit("heard")] if message == done else []

    loop = loop_of(process, answer, 10**6)
    posts = [Post(Peer(name, 1), "t", To(home.around.card.port)) for name in ("stranger", "friend")]
    tick = loop.machine.tick

    def talking(now: int) -> list[Effect]:
        posts[0].send("merge-0.a", Parcel(TakeLead(1)))
        posts[1].send("merge-0.a", Parcel(TakeLead(2) if len(heard) < 3 else done))
        return tick(now)

    loop.machine.tick = talking  # type: ignore[method-assign]
    assert process.run(loop) == 0
    assert set(heard) == {TakeLead(2), done}
    for post in posts:
        post.drain(5)
    process._server.shutdown()


@pytest.mark.parametrize(("reason", "code"), [("completed", COMPLETED), ("retired", RETIRED)])
def test_process_that_is_needed_no_more_stays_healthy_and_ready(
    home: Home, reason: str, code: int
) -> None:
    process = Process("split", home)
    process.serve(MergeState, process.is_running)
    loop = loop_of(process, lambda _: [Exit(reason)], 10**6)
    seen: list[int] = []
    released: list[str] = []

    def look() -> None:
        loop.turned_at -= 2 * LOOP_STUCK_MS
        assert released == ["Spark"]
        seen.extend(get(home.around.card.http_port, page)[0] for page in ("/healthz", "/readyz"))

    home.resting = look
    assert process.run(loop, lambda: released.append("Spark")) == 17
    assert home.rests_after == code
    assert seen == [200, 200]
    assert home.around.closed
    assert (home.volume.directory / "clean").exists()
    process._server.shutdown()


def test_stuck_loop_is_not_healthy(home: Home) -> None:
    process = Process("split", home)
    process.serve(MergeState, process.is_running)
    seen: list[int] = []

    def stuck(_: object) -> list[Effect]:
        loop.turned_at -= 2 * LOOP_STUCK_MS
        seen.extend(get(home.around.card.http_port, page)[0] for page in ("/healthz", "/readyz"))
        return [Exit("seen")]

    loop = loop_of(process, stuck, 10**6)
    assert process.run(loop) == 0
    assert seen == [503, 503]
    process._server.shutdown()


def test_silence_setting_comes_from_environment() -> None:
    assert settings_of(Told().pipeline, 5000).silence == 5000


@pytest.mark.parametrize(("buffer", "kept"), [("64Mi", 64 * 2**20), ("2Gi", 2 * 2**30)])
def test_lane_keeps_the_bytes_of_the_manifest(buffer: str, kept: int) -> None:
    pipeline = parse_pipeline(manifest(splits={"buffer": buffer}))
    assert isinstance(pipeline, Pipeline)
    assert settings_of(pipeline, 5000).max_lane_bytes == kept


def test_lane_keeps_the_default_of_the_protocol_unless_told() -> None:
    assert settings_of(Told().pipeline, 5000).max_lane_bytes == ProtocolSettings().max_lane_bytes


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--dir", "d", "--name", "n"],
        ["--in-cluster", "--dir", "d"],
        ["--in-cluster", "--dir", "d", "--name", "n", "--volume", "v"],
    ],
)
def test_program_requires_either_cluster_or_volume(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tandem-split", *arguments])
    with pytest.raises(SystemExit) as end:
        main("split", lambda _: None, lambda *_: 0)
    assert end.value.code == 2

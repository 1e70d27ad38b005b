import contextlib
import os
import queue
import socket
import stat
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import flight
from tests.wire.test_frames import Later

from tandem_core.contract.records import encode
from tandem_core.network.flight_calls import UNANSWERED_MS, call, location
from tandem_runtime.protocol.messages.peers import Answer, CopyChunk, StateCopied, TakeLead
from tandem_runtime.protocol.types import LaneId, Peer
from tandem_runtime.wire.flight import QUEUED, FlightServer, Hello, Parcel, Post
from tandem_runtime.wire.frames import PIECE, SCHEMA, FramePart, Tree, tree_parts

TOKEN = "secret"  # noqa: S105 - of this test's own server
ME = Peer("replica.a", 3)
LIMIT = 120.0


class Known:
    """A directory of addresses that the test changes."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self.volumes: queue.Queue[str] = queue.Queue()

    def address_of(self, volume: str) -> tuple[str, int] | None:
        port = self.ports.get(volume)
        return None if port is None else ("127.0.0.1", port)

    def met(self, volume: str) -> None:
        self.volumes.put(volume)


class Station:
    """A server that keeps what it receives."""

    def __init__(self, incoming: Path) -> None:
        self.received: queue.Queue[tuple[Peer, Any]] = queue.Queue()
        self.broken = False
        self.ignores = False
        self.let_go = threading.Event()
        """A tree that was ignored is referred to by nobody."""
        self.server = FlightServer(
            ("127.0.0.1", 0),
            TOKEN,
            "merge.b",
            incoming,
            self._receive,
            {"echo": lambda body: body + b"!"},
        )

    def _receive(self, peer: Peer, message: object) -> None:
        if self.broken:
            raise flight.FlightServerError("this process is about to end")
        if self.ignores and isinstance(message, StateCopied):
            (tree,) = cast("tuple[Tree]", message.payload)
            weakref.finalize(tree, self.let_go.set)
            return
        self.received.put((peer, message))

    def next(self) -> tuple[Peer, Any]:
        return self.received.get(timeout=LIMIT)


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    made = Station(tmp_path / "incoming")
    yield made
    made.server.shutdown()


@pytest.fixture
def known(station: Station) -> Known:
    directory = Known()
    directory.ports["merge.b"] = station.server.port
    return directory


@pytest.fixture
def post(known: Known) -> Iterator[Post]:
    made = Post(ME, TOKEN, known)
    yield made
    made.drain(LIMIT)


def test_message_arrives_with_its_sender(post: Post, station: Station) -> None:
    post.send("merge.b", Parcel(TakeLead(7)))
    assert station.next() == (ME, TakeLead(7))


def test_message_of_unknown_kind_does_not_end_stream(
    post: Post, station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        post.send("merge.b", Parcel(Later(number), lambda: iter([FramePart(0, None, b"x")])))
        post.send("merge.b", Parcel(TakeLead(number)))
    assert [station.next()[1] for _ in range(3)] == [TakeLead(number) for number in range(3)]
    assert len(caplog.records) == 1


def test_large_payloads_arrive_with_their_message(post: Post, station: Station) -> None:
    values = [os.urandom(3_000_000), b"", b"x"]
    parts = [FramePart(number, None, value) for number, value in enumerate(values)]
    post.send("merge.b", Parcel(Answer("pair-0", 4, 99), lambda: iter(parts)))
    post.send("merge.b", Parcel(TakeLead(1)))
    _, answer = station.next()
    assert [value.to_pybytes() for value in answer.payload] == values
    assert answer.replace(payload=None) == Answer("pair-0", 4, 99)
    assert station.next()[1] == TakeLead(1)


def test_tree_arrives_on_disk(post: Post, station: Station, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "state/0").mkdir(parents=True)
    (tree / "state/0/1.delta").write_bytes(os.urandom(PIECE * 2 + 17))
    (tree / "metadata").write_bytes(b"")
    message = StateCopied("pair-0", 4, None, None, (), ())
    post.send("merge.b", Parcel(message, lambda: tree_parts(0, tree)))
    (copy,) = station.next()[1].payload
    for name in ("state/0/1.delta", "metadata"):
        assert (copy.path / name).read_bytes() == (tree / name).read_bytes()


def test_unclaimed_tree_is_deleted_while_stream_lasts(
    post: Post, station: Station, tmp_path: Path
) -> None:
    station.ignores = True
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "metadata").write_bytes(b"x")
    message = StateCopied("pair-0", 4, None, None, (), ())
    post.send("merge.b", Parcel(message, lambda: tree_parts(0, tmp_path / "tree")))
    assert station.let_go.wait(LIMIT)
    # The files are removed just after that, so what comes next on the stream finds them gone.
    post.send("merge.b", Parcel(TakeLead(1)))
    station.next()
    assert list((tmp_path / "incoming").iterdir()) == []  # [12]


def _erased() -> Iterator[FramePart]:
    yield FramePart(0, None, b"half")
    raise FileNotFoundError


def test_erased_payload_is_skipped_without_ending_stream(post: Post, station: Station) -> None:
    post.send("merge.b", Parcel(CopyChunk(LaneId("s", 1), (1, 1), (1, 1), 0, 1), _erased))
    post.send("merge.b", Parcel(TakeLead(2)))
    assert station.next()[1] == TakeLead(2)


class Unheard(Exception):
    """Nothing in the product catches this by name."""


def _unreadable() -> Iterator[FramePart]:
    yield FramePart(0, None, b"half")
    raise Unheard


def test_error_while_sending_is_logged_and_ends_nothing(
    post: Post, station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    post.send("merge.b", Parcel(Answer("pair-0", 4, 99), _unreadable))
    post.send("merge.b", Parcel(TakeLead(1)))
    assert station.next()[1] == TakeLead(1)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [Unheard]


def test_failing_directory_lookup_does_not_end_line_to_peer(
    post: Post, station: Station, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([Unheard()])
    healthy = known.address_of

    def address_of(volume: str) -> tuple[str, int] | None:
        for failure in failures:
            raise failure
        return healthy(volume)

    monkeypatch.setattr(known, "address_of", address_of)
    for number in (1, 2):
        post.send("merge.b", Parcel(TakeLead(number)))
    assert station.next()[1] == TakeLead(2)


def test_moved_peer_is_found_again(
    post: Post, station: Station, known: Known, tmp_path: Path
) -> None:
    post.send("merge.b", Parcel(TakeLead(1)))
    station.next()
    other = Station(tmp_path / "other")
    known.ports["merge.b"] = other.server.port
    station.broken = True
    found: list[Any] = []
    for number in range(2, 1000):
        # Messages into the broken stream are lost: they are said again until one arrives.
        post.send("merge.b", Parcel(TakeLead(number)))
        with contextlib.suppress(queue.Empty):
            found.append(other.received.get(timeout=0.1))
            break
    assert found
    post.drain(LIMIT)
    other.server.shutdown()


def test_stream_for_another_volume_is_refused_with_actual_volume(
    post: Post, station: Station, known: Known
) -> None:
    known.ports["merge.former"] = station.server.port
    while known.volumes.empty():
        post.send("merge.former", Parcel(TakeLead(1)))
        with contextlib.suppress(queue.Empty):
            assert known.volumes.get(timeout=0.1) == "merge.b"
            break
    assert station.received.empty()


def test_stream_without_hello_is_refused(station: Station) -> None:
    headers = [(b"tandem-token", TOKEN.encode())]
    with flight.connect(f"grpc://127.0.0.1:{station.server.port}") as client:
        options = flight.FlightCallOptions(headers=headers, timeout=LIMIT)
        descriptor = flight.FlightDescriptor.for_command(encode(("merge.b",)))
        with pytest.raises(flight.FlightServerError):
            writer, _ = client.do_put(descriptor, SCHEMA, options)
            while True:
                writer.write_metadata(pa.py_buffer(encode(TakeLead(1))))
    assert station.received.empty()


def test_idle_line_is_closed_and_reopened(
    post: Post, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem_runtime.wire.flight.IDLE_SECONDS", 0.05)
    for term in (1, 2):
        post.send("merge.b", Parcel(TakeLead(term)))
        assert station.next() == (ME, TakeLead(term))
        line = post._lines.get("merge.b")
        if line is not None:
            line.thread.join(LIMIT)
        assert post._lines == {}


def test_connection_to_vanished_machine_times_out(post: Post, station: Station) -> None:
    post.send("merge.b", Parcel(TakeLead(1)))
    station.next()
    assert set(_limits_of_connections_to(station.server.port)) == {UNANSWERED_MS}


def _limits_of_connections_to(port: int) -> Iterator[int]:
    """After how many milliseconds without an acknowledgement connections to a port break."""
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(path.stat().st_mode):
                continue
            with socket.socket(fileno=os.dup(int(path.name))) as each:
                if each.getpeername()[1] == port:
                    yield each.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


def test_queue_for_unknown_peer_is_bounded(post: Post, station: Station) -> None:
    for number in range(10 * QUEUED):
        post.send("nobody", Parcel(TakeLead(number)))
    line = post._lines["nobody"]
    assert len(line._queue) <= QUEUED
    post.send("merge.b", Parcel(TakeLead(1)))
    assert station.next()[1] == TakeLead(1)


def test_dropped_parcels_are_reported_over(post: Post) -> None:  # [12]
    over: list[int] = []
    for number in range(3 * QUEUED):
        post.send("nobody", Parcel(TakeLead(number), over=partial(over.append, number)))
    post.drain(LIMIT)
    assert sorted(over) == list(range(3 * QUEUED))


@pytest.mark.parametrize("parts", [None, _unreadable, _erased])
def test_sent_or_unreadable_parcels_are_reported_over(
    post: Post, parts: Callable[[], Iterator[FramePart]] | None
) -> None:
    over: list[int] = []
    post.send("merge.b", Parcel(Answer("pair-0", 4, 99), parts, partial(over.append, 1)))
    post.send("merge.b", Parcel(TakeLead(1), over=partial(over.append, 2)))
    post.drain(LIMIT)
    assert over == [1, 2]


@pytest.mark.parametrize("headers", [[], [(b"tandem-token", b"wrong")]])
def test_stream_without_token_is_refused(
    station: Station, headers: list[tuple[bytes, bytes]]
) -> None:
    with flight.connect(f"grpc://127.0.0.1:{station.server.port}") as client:
        options = flight.FlightCallOptions(headers=headers, timeout=LIMIT)
        descriptor = flight.FlightDescriptor.for_command(encode(Hello(ME, "merge.b")))
        with pytest.raises(flight.FlightUnauthenticatedError):
            # The refusal may come with the first call or with a later one.
            writer, _ = client.do_put(descriptor, SCHEMA, options)
            while True:
                writer.write_metadata(pa.py_buffer(encode(TakeLead(1))))
    assert station.received.empty()


def test_ipv6_address_is_bracketed() -> None:
    assert location("10.1.2.3", 7070) == "grpc://10.1.2.3:7070"
    assert location("fd00::7", 7070) == "grpc://[fd00::7]:7070"


def test_action_without_token_is_refused(station: Station) -> None:
    with pytest.raises(flight.FlightUnauthenticatedError):
        call("127.0.0.1", station.server.port, "wrong", "echo", b"hi")
    assert call("127.0.0.1", station.server.port, TOKEN, "echo", b"hi") == b"hi!"


def test_name_outside_tree_is_refused(post: Post, station: Station, tmp_path: Path) -> None:
    parts = [FramePart(0, "../../outside", b"x")]
    message = StateCopied("pair-0", 4, None, None, (), ())
    post.send("merge.b", Parcel(message, lambda: iter(parts)))
    while station.received.empty():
        post.send("merge.b", Parcel(TakeLead(3)))
        with contextlib.suppress(queue.Empty):
            assert station.received.get(timeout=0.1)[1] == TakeLead(3)
            break
    assert not (tmp_path.parent / "outside").exists()
    assert not (tmp_path / "outside").exists()

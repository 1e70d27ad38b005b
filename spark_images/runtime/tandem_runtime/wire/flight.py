"""Arrow Flight between the processes of a pipeline: one stream for each direction and pair.

Messages may be lost, late or duplicated [11], so nothing here waits for an answer: a message that
cannot be sent is dropped, and the machines repeat it. Every queue is bounded [12]. Every call
carries the pipeline's token; a call without it is refused before anything is read. A stream names
its sender and the volume it is for. A process on another volume refuses it and names its own.
"""

from __future__ import annotations

import hmac
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import flight

from tandem_core.contract.records import Record, Undecodable, UnknownRecord, decode, encode
from tandem_core.network.flight_calls import HEADER, connect, location
from tandem_runtime.protocol.types import Peer
from tandem_runtime.wire.frames import (
    SCHEMA,
    Assembly,
    FramePart,
    UnknownMessage,
    batch_of,
    bytes_of,
    message_frame,
    part_frame,
)

QUEUED = 256
"""Messages waiting for one peer; beyond that the oldest are dropped."""

RETRY_SECONDS = 0.2
"""Pause after a peer could not be reached."""

IDLE_SECONDS = 60.0
"""A connection unused for this long is closed; the next message opens a new one."""


_log = logging.getLogger(__name__)


class Hello(Record):
    """The beginning of a stream: its sender, and the volume it is for."""

    sender: Peer
    to: str


class Parcel(NamedTuple):
    """A message to send; `parts` reads the bytes that belong to it when it is sent."""

    message: object
    parts: Callable[[], Iterator[FramePart]] | None = None
    over: Callable[[], None] = lambda: None
    """Called once, from any thread, when the message was sent or dropped, to release what was kept
    for it. Raises nothing."""


class PeerDirectory(Protocol):
    """Finds the address of the process on a volume."""

    def address_of(self, volume: str) -> tuple[str, int] | None:
        """Host and port, or None if unknown."""

    def met(self, volume: str) -> None:
        """Record that a process is on this volume, and not on the one that was addressed."""


# --- receiving ----------------------------------------------------------------------------------


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses every call that does not carry the token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> None:  # noqa: ARG002
        given = headers.get(HEADER, [""])[0]
        if not hmac.compare_digest(given.encode(), self._token):
            raise flight.FlightUnauthenticatedError("the pipeline's token is missing or wrong")


class FlightServer(flight.FlightServerBase):  # type: ignore[misc]
    """Receives the streams of peers for one volume, and answers actions."""

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        volume: str,
        incoming: Path,
        receive: Callable[[Peer, object], None],
        actions: Mapping[str, Callable[[bytes], bytes]],
        alarm: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Port 0 lets the system choose one. `alarm` is called for unreadable log entries."""
        host, port = address
        super().__init__(location(host, port), middleware={"token": _TokenCheck(token)})
        self._volume = volume
        self._incoming = incoming
        self._receive = receive
        self._actions = actions
        self._alarm = alarm
        self._passed_over: set[str] = set()

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:  # noqa: ARG002
        """Receive a peer's stream until it ends."""
        peer, to = self._parties(descriptor.command)
        if to != self._volume:
            raise flight.FlightServerError(f"this is {self._volume}", self._volume.encode())
        assembly = Assembly(self._incoming)
        try:
            for item in reader:
                self._take(peer, assembly, item)
        except UnknownRecord as problem:
            self._alarm(f"{peer.volume} sends a log entry that cannot be read here: {problem}")
            raise flight.FlightServerError(str(problem)) from problem
        except Undecodable as problem:
            _log.warning("%s sends what cannot be read: %s", peer.volume, problem)
            raise flight.FlightServerError(str(problem)) from problem
        finally:
            assembly.drop()

    def _take(self, peer: Peer, assembly: Assembly, item: Any) -> None:
        """Pass a message on, without a reference to it while the stream waits for the next."""
        data = None if item.data is None else bytes_of(item.data)
        try:
            message = assembly.take(item.app_metadata, data)
        except UnknownMessage as unknown:
            self._pass_over(peer, str(unknown))
            return
        if message is not None:
            self._receive(peer, message)

    def _pass_over(self, peer: Peer, kind: str) -> None:
        """Drop a message that only a later version understands; logged once for each kind."""
        if kind not in self._passed_over:
            self._passed_over.add(kind)
            _log.warning("%s sends messages of an unknown kind: %s", peer.volume, kind)

    def _parties(self, hello: bytes) -> tuple[Peer, str]:
        """The sender of a stream, and the volume it is for."""
        try:
            said = decode(hello, Hello)
        except Undecodable as problem:
            raise flight.FlightServerError(f"a stream without sender: {problem}") from problem
        return said.sender, said.to

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:  # noqa: ARG002
        """Answer an action, such as the assignment of a spare."""
        handler = self._actions.get(action.type)
        if handler is None:
            raise flight.FlightServerError(f"no action {action.type}")
        yield flight.Result(handler(action.body.to_pybytes()))


# --- sending ------------------------------------------------------------------------------------


class Post:
    """Sends messages, with one thread per peer, so that a frozen peer delays no other."""

    def __init__(self, me: Peer, token: str, directory: PeerDirectory) -> None:
        self._me = me
        self._token = token
        self._directory = directory
        self._lines: dict[str, _Line] = {}
        self._lock = threading.Lock()

    def send(self, to: str, parcel: Parcel) -> None:
        """Queue a message for the process on a volume; it may never arrive."""
        with self._lock:
            line = self._lines.get(to)
            if line is None:
                line = _Line(self._me, to, self._token, self._directory, self._give_up)
                self._lines[to] = line
            line.put(parcel)

    def _give_up(self, to: str) -> bool:
        """Forget an idle connection; false if a message is waiting for it after all."""
        with self._lock:
            if self._lines[to].waiting:
                return False
            del self._lines[to]
            return True

    def drain(self, seconds: float) -> None:
        """Wait for queued messages to be sent, at most so long per peer; the process ends then."""
        with self._lock:
            lines = list(self._lines.values())
        for line in lines:
            line.end()
        for line in lines:
            line.thread.join(seconds)


class _Line:
    """The connection to one peer: a bounded queue and the thread that empties it."""

    def __init__(
        self,
        me: Peer,
        to: str,
        token: str,
        directory: PeerDirectory,
        give_up: Callable[[str], bool],
    ) -> None:
        self._hello = encode(Hello(me, to))
        self._to = to
        self._options = flight.FlightCallOptions(headers=[(HEADER.encode(), token.encode())])
        self._directory = directory
        self._give_up = give_up
        self._queue: deque[Parcel] = deque()
        self._ready = threading.Condition()
        self._ended = False
        self.connect: Any = None
        self._writer: Any = None
        self.thread = threading.Thread(target=self._run, name=f"to {to}", daemon=True)
        self.thread.start()

    @property
    def waiting(self) -> int:
        """Number of queued messages."""
        return len(self._queue)

    def put(self, parcel: Parcel) -> None:
        with self._ready:
            self._queue.append(parcel)
            self._ready.notify()
        self._drop_beyond(QUEUED)

    def _drop_beyond(self, most: int) -> None:
        """Drop the oldest messages beyond a number."""
        with self._ready:
            dropped = [self._queue.popleft() for _ in range(len(self._queue) - most)]
        for parcel in dropped:
            parcel.over()

    def end(self) -> None:
        with self._ready:
            self._ended = True
            self._ready.notify()

    def _run(self) -> None:
        while (parcel := self._next()) is not None:
            try:
                self._try(parcel)
            except Exception:  # noqa: BLE001 - the thread of a peer must live
                # Without its thread the line would stay known, and its peer unreachable for ever.
                _log.exception("%s is not sent to %s", type(parcel.message).__name__, self._to)
                self._disconnect()
                self._pause()
        self._disconnect()

    def _try(self, parcel: Parcel) -> None:
        try:
            self._transmit(parcel)
        except FileNotFoundError:
            # The bytes to send have been erased: no peer needs them any more.
            self._disconnect()
        except (pa.ArrowException, OSError) as problem:
            _log.debug("%s cannot be reached: %s", self._to, problem)
            self._learn(problem)
            self._disconnect()
            self._pause()
        finally:
            parcel.over()

    def _next(self) -> Parcel | None:
        """Wait for the next message; None when this line is ended or idle."""
        while True:
            with self._ready:
                used = self._ready.wait_for(lambda: self._queue or self._ended, IDLE_SECONDS)
                if self._queue:
                    return self._queue.popleft()
            if self._ended or (not used and self._give_up(self._to)):
                return None

    def _transmit(self, parcel: Parcel) -> None:
        if self._writer is None and not self._connect():
            self._pause()
            return
        if parcel.parts is not None:
            for part in parcel.parts():
                self._writer.write_with_metadata(batch_of(part.data), part_frame(part))
        self._writer.write_metadata(pa.py_buffer(message_frame(parcel.message)))

    def _connect(self) -> bool:
        address = self._directory.address_of(self._to)
        if address is None:
            return False
        self.connect = connect(*address)
        descriptor = flight.FlightDescriptor.for_command(self._hello)
        self._writer, _ = self.connect.do_put(descriptor, SCHEMA, self._options)
        return True

    def _learn(self, problem: Exception) -> None:
        """Record the volume that a process names when it refuses a stream for another one."""
        volume = getattr(problem, "extra_info", b"")
        if volume:
            self._directory.met(volume.decode())

    def _disconnect(self) -> None:
        writer, client = self._writer, self.connect
        self._writer = self.connect = None
        for closing in (writer, client):
            if closing is not None:
                try:
                    closing.close()
                except Exception as problem:  # noqa: BLE001 - dropped anyway
                    # The connection is dropped anyway.
                    _log.debug("closing the way to %s: %s", self._to, problem)

    def _pause(self) -> None:
        """Wait before the next try, then drop the oldest messages: they are outdated."""
        with self._ready:
            self._ready.wait_for(lambda: self._ended, RETRY_SECONDS)
        self._drop_beyond(QUEUED // 4)

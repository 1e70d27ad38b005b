"""Arrow Flight between the processes of a pipeline: one stream for each direction and pair.

Messages may be lost, late or doubled [11], so nothing here waits for an answer: what cannot be
sent is dropped, the machines say it again. Every queue has a bound [12]. Every call carries the
pipeline's token and says which process it comes from; a call without the token is refused before
anything is read.
"""

from __future__ import annotations

import hmac
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import flight

from tandem_runtime.protocol.data import Peer
from tandem_runtime.wire.codec import Undecodable, decode, encode
from tandem_runtime.wire.frames import (
    SCHEMA,
    Assembly,
    Part,
    batch_of,
    bytes_of,
    message_frame,
    part_frame,
)

QUEUED = 256
"""Messages waiting for one peer; beyond that the oldest are dropped."""

RETRY_SECONDS = 0.2
"""Pause after a peer could not be reached."""

_HEADER = "tandem-token"
_log = logging.getLogger(__name__)


class Parcel(NamedTuple):
    """A message to be sent, and where the bytes that go with it are read when its turn comes."""

    message: object
    parts: Callable[[], Iterator[Part]] | None = None


class Directory(Protocol):
    """Where the process that runs on a volume can be reached."""

    def address_of(self, volume: str) -> tuple[str, int] | None:
        """Host and port, or None if nobody knows."""


# --- receiving ----------------------------------------------------------------------------------


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses every call that does not carry the token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> None:  # noqa: ARG002
        given = headers.get(_HEADER, [""])[0]
        if not hmac.compare_digest(given.encode(), self._token):
            raise flight.FlightUnauthenticatedError("the pipeline's token is missing or wrong")


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Takes the streams of peers in, and answers actions."""

    def __init__(
        self,
        host: str,
        token: str,
        incoming: Path,
        receive: Callable[[Peer, object], None],
        actions: dict[str, Callable[[bytes], bytes]],
    ) -> None:
        super().__init__(f"grpc://{host}:0", middleware={"token": _TokenCheck(token)})
        self._incoming = incoming
        self._receive = receive
        self._actions = actions

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:  # noqa: ARG002
        """A peer's stream, for as long as it lasts."""
        peer = Peer(*decode(descriptor.command))
        assembly = Assembly(self._incoming)
        try:
            for item in reader:
                data = None if item.data is None else bytes_of(item.data)
                message = assembly.take(item.app_metadata, data)
                if message is not None:
                    self._receive(peer, message)
        except Undecodable as problem:
            _log.warning("%s sends what cannot be read: %s", peer.volume, problem)
            raise flight.FlightServerError(str(problem)) from problem
        finally:
            assembly.drop()

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:  # noqa: ARG002
        """Something asked by whoever watches the pipeline."""
        handler = self._actions.get(action.type)
        if handler is None:
            raise flight.FlightServerError(f"no action {action.type}")
        yield flight.Result(handler(action.body.to_pybytes()))


# --- sending ------------------------------------------------------------------------------------


class Post:
    """Sends messages to peers, each from its own thread, so that a frozen peer delays nobody."""

    def __init__(self, me: Peer, token: str, directory: Directory) -> None:
        self._me = me
        self._token = token
        self._directory = directory
        self._lines: dict[str, _Line] = {}

    def send(self, to: str, parcel: Parcel) -> None:
        """Queue a message for the process on a volume; it may never arrive."""
        line = self._lines.get(to)
        if line is None:
            line = self._lines[to] = _Line(self._me, to, self._token, self._directory)
        line.put(parcel)

    def forget(self, volume: str) -> None:
        """A volume is gone for good: nothing will be sent there any more."""
        line = self._lines.pop(volume, None)
        if line is not None:
            line.end()

    def drain(self, seconds: float) -> None:
        """Give what is queued a chance to leave before the process ends."""
        for line in list(self._lines.values()):
            line.end()
        for line in list(self._lines.values()):
            line.thread.join(seconds)


class _Line:
    """The way to one peer: a bounded queue and the thread that empties it."""

    def __init__(self, me: Peer, to: str, token: str, directory: Directory) -> None:
        self._hello = encode(tuple(me))
        self._to = to
        self._options = flight.FlightCallOptions(headers=[(_HEADER.encode(), token.encode())])
        self._directory = directory
        self._queue: deque[Parcel] = deque(maxlen=QUEUED)
        self._ready = threading.Condition()
        self._ended = False
        self._client: Any = None
        self._writer: Any = None
        self.thread = threading.Thread(target=self._run, name=f"to {to}", daemon=True)
        self.thread.start()

    def put(self, parcel: Parcel) -> None:
        with self._ready:
            self._queue.append(parcel)
            self._ready.notify()

    def end(self) -> None:
        with self._ready:
            self._ended = True
            self._ready.notify()

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._queue or self._ended)
                if not self._queue:
                    break
                parcel = self._queue.popleft()
            try:
                self._transmit(parcel)
            except FileNotFoundError:
                # What was to be sent has been erased: nobody needs it any more.
                self._disconnect()
            except (pa.ArrowException, OSError) as problem:
                _log.debug("%s cannot be reached: %s", self._to, problem)
                self._disconnect()
                self._pause()
        self._disconnect()

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
        self._client = flight.connect(f"grpc://{address[0]}:{address[1]}")
        descriptor = flight.FlightDescriptor.for_command(self._hello)
        self._writer, _ = self._client.do_put(descriptor, SCHEMA, self._options)
        return True

    def _disconnect(self) -> None:
        writer, client = self._writer, self._client
        self._writer = self._client = None
        for closing in (writer, client):
            if closing is not None:
                try:
                    closing.close()
                except (pa.ArrowException, OSError) as problem:
                    _log.debug("closing the way to %s: %s", self._to, problem)

    def _pause(self) -> None:
        """Wait before the next try; meanwhile newer messages replace the oldest."""
        with self._ready:
            self._ready.wait_for(lambda: self._ended, RETRY_SECONDS)
            while len(self._queue) > QUEUED // 4:
                self._queue.popleft()


def call(host: str, port: int, token: str, action: str, body: bytes = b"") -> bytes:
    """Ask a process for something.

    Raises:
        pyarrow.ArrowException: it cannot be reached, or it refuses.
    """
    options = flight.FlightCallOptions(headers=[(_HEADER.encode(), token.encode())], timeout=5.0)
    with flight.connect(f"grpc://{host}:{port}") as client:
        results = list(client.do_action(flight.Action(action, body), options))
    return b"".join(result.body.to_pybytes() for result in results)

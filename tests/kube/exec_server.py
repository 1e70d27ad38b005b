"""An API server that takes one command for a pod over a WebSocket, and answers as it is told."""

import base64
import hashlib
import socket
import struct
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE = 0x2, 0x8


class ExecServer:
    """Serves one connection: a refusal if `status` is given, else messages, channel first."""

    def __init__(
        self,
        messages: Sequence[tuple[int, bytes]] = (),
        status: int | None = None,
        body: bytes = b"",
        *,
        closes: bool = True,
    ) -> None:
        self._messages = messages
        self._status = status
        self._body = body
        self._closes = closes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.path = ""
        self.query: list[tuple[str, str]] = []
        self.headers: dict[str, str] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._thread.join(30)
        self._listener.close()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as stream:
            target = urlsplit(stream.readline().split()[1].decode())
            self.path, self.query = target.path, parse_qsl(target.query)
            while line := stream.readline().strip():
                name, _, value = line.decode().partition(":")
                self.headers[name.lower()] = value.strip()
            if self._status is not None:
                head = f"HTTP/1.1 {self._status} No\r\nContent-Length: {len(self._body)}\r\n\r\n"
                connection.sendall(head.encode() + self._body)
                return
            connection.sendall(self._accept())
            for channel, data in self._messages:
                connection.sendall(_frame(_BINARY, bytes([channel]) + data))
            if self._closes:
                connection.sendall(_frame(_CLOSE, struct.pack("!H", 1000)))
                stream.read()

    def _accept(self) -> bytes:
        key = self.headers["sec-websocket-key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + _MAGIC, usedforsecurity=False).digest())
        return (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )


def _frame(kind: int, data: bytes) -> bytes:
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data))
    return bytes([0x80 | kind]) + size + data

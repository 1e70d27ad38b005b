"""Runs commands in pods, over the exec WebSocket of the API server.

The first byte of every message names its channel. The client of the `kubernetes` package is not
used, because it waits for ever when the server does not answer.
"""

import json
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

import websocket
from kubernetes.client.configuration import Configuration

from tandem.kube.client import cause_of
from tandem.kube.kinds import POD, Object
from tandem.kube.objects import name_of, namespace_of
from tandem.kube.port import KubeError, NotFound, Ran, Refused, Unreachable

PATIENCE = 15.0
"""Seconds that a command may take."""

_PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"]
_OUTPUT, _ERRORS, _END = 1, 2, 3
_NOT_FOUND, _TOO_MANY, _SERVER_ERROR = 404, 429, 500


class PodShell:
    """See `tandem.kube.port.Shell`."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def run(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the first container of a pod."""
        try:
            connection = self._connect(_path(pod, command))
        except websocket.WebSocketBadStatusException as answer:
            raise _error(answer) from answer
        except (websocket.WebSocketException, OSError) as problem:
            raise Unreachable(f"exec in {name_of(pod)}: {cause_of(problem)}") from problem
        try:
            return _ran(_messages(connection))
        finally:
            connection.shutdown()  # type: ignore[no-untyped-call]

    def _connect(self, path: str) -> websocket.WebSocket:
        configuration = self._configuration
        # http becomes ws, https becomes wss.
        url = f"ws{configuration.host.removeprefix('http')}{path}"
        allowed = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return websocket.create_connection(
            url,
            timeout=PATIENCE,
            subprotocols=_PROTOCOLS,
            header=[f"Authorization: {allowed}"] if allowed else [],
            sslopt=_tls(configuration),
            suppress_origin=True,
            **_proxy(configuration),
        )


def _path(pod: Object, command: Sequence[str]) -> str:
    query = [
        ("container", pod["spec"]["containers"][0]["name"]),
        ("stdout", "true"),
        ("stderr", "true"),
        *(("command", word) for word in command),
    ]
    return f"{POD.path(namespace_of(pod), name_of(pod))}/exec?{urlencode(query)}"


def _tls(configuration: Configuration) -> dict[str, Any]:
    given = {
        "ca_certs": configuration.ssl_ca_cert,
        "certfile": configuration.cert_file,
        "keyfile": configuration.key_file,
        "server_hostname": configuration.tls_server_name,
    }
    checks = {} if configuration.verify_ssl else {"cert_reqs": ssl.CERT_NONE}
    return {**{name: value for name, value in given.items() if value}, **checks}


def _proxy(configuration: Configuration) -> dict[str, Any]:
    proxy = urlsplit(configuration.proxy or "")
    if proxy.hostname is None:
        return {}
    bypassing = (configuration.no_proxy or "").split(",")
    return {
        "http_proxy_host": proxy.hostname,
        "http_proxy_port": proxy.port or 80,
        "http_no_proxy": [host for host in bypassing if host],
    }


def _messages(connection: websocket.WebSocket) -> Iterator[tuple[int, bytes]]:
    """Yield messages with their channels, until the server closes or the time is over."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            kind, data = connection.recv_data()
        except (websocket.WebSocketException, OSError):
            # A container that ends also ends its commands, sometimes without a close message.
            return
        if kind == websocket.ABNF.OPCODE_CLOSE:
            return
        if data:
            yield data[0], data[1:]


def _ran(messages: Iterator[tuple[int, bytes]]) -> Ran:
    said = {_OUTPUT: b"", _ERRORS: b"", _END: b""}
    for channel, data in messages:
        said[channel] = said.get(channel, b"") + data
    printed, errors = (said[each].decode(errors="replace") for each in (_OUTPUT, _ERRORS))
    return Ran(printed, _problem(said[_END], errors))


def _problem(end: bytes, errors: str) -> str:
    """Why a command failed: its standard error, or else the server's message; empty if not."""
    try:
        status = json.loads(end or b"{}")
    except ValueError:
        status = {"status": "Failure", "message": end.decode(errors="replace")}
    if status.get("status") in {None, "Success"}:
        return ""
    return errors.strip() or str(status.get("message", "it failed"))


def _error(answer: websocket.WebSocketBadStatusException) -> KubeError:
    status, body = answer.status_code, answer.resp_body or b""
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body.decode(errors="replace")
    text = f"exec: {status} {message}"
    if status == _NOT_FOUND:
        return NotFound(text)
    return Unreachable(text) if status >= _SERVER_ERROR or status == _TOO_MANY else Refused(text)

"""How every process of a pipeline starts, serves and ends."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tandem.model.pipeline import Pipeline
from tandem_runtime.protocol.data import Peer, Settings
from tandem_runtime.protocol.messages import Terminate
from tandem_runtime.services import http
from tandem_runtime.services.node import EXIT_COMPLETED, EXIT_WIPED, Node, milliseconds
from tandem_runtime.surroundings.laptop import LOOPBACK, Laptop
from tandem_runtime.surroundings.port import Card
from tandem_runtime.volume.volume import Volume, VolumeDistrusted
from tandem_runtime.wire.flight import Post, Server

LOOP_STUCK_MS = 10_000
"""A loop that has not turned for so long is not healthy."""

LAST_WORDS_SECONDS = 1.5
"""How long a process of a completed pipeline can still be asked for its state."""

_log = logging.getLogger(__name__)


class Process:
    """What a program has before its machine is built."""

    def __init__(self, kind: str, arguments: argparse.Namespace) -> None:
        self.kind = kind
        self.name: str = arguments.name
        self.started = time.monotonic()
        directory = Path(arguments.dir).absolute()
        self.volume = Volume(directory / "volumes" / arguments.volume)
        self.volume.claim()
        self.surroundings = Laptop(directory, self.volume.id)
        self.peer = Peer(self.volume.id, self.volume.incarnation)
        self.post = Post(self.peer, self.surroundings.token, self.surroundings)
        self.settings = settings_of(self.surroundings.pipeline)
        self._node: Node | None = None
        self._state: Callable[[], dict[str, object]] = dict
        self._ports: tuple[int, int] | None = None

    def serve(
        self,
        state: Callable[[], dict[str, object]],
        pair: str | None = None,
        actions: dict[str, Callable[[bytes], bytes]] | None = None,
    ) -> None:
        """Answer peers and watchers, and tell where; called again when `state` or pair change."""
        self._state = state
        if self._ports is None:
            self._ports = self._listen(actions or {})
        self.surroundings.announce(
            Card(
                name=self.name,
                kind=self.kind,
                pair=pair,
                volume=self.volume.id,
                incarnation=self.volume.incarnation,
                host=LOOPBACK,
                port=self._ports[0],
                http_port=self._ports[1],
                pid=os.getpid(),
            )
        )

    def _listen(self, actions: dict[str, Callable[[bytes], bytes]]) -> tuple[int, int]:
        incoming = self.volume.directory / "incoming"
        incoming.mkdir(exist_ok=True)
        # It answers from its own threads. `serve` would also take the signals for itself.
        server = self._server = Server(
            LOOPBACK, self.surroundings.token, incoming, self._receive, actions
        )
        return server.port, http.serve(LOOPBACK, self._healthy, self._whole_state)

    def _receive(self, sender: Peer, message: object) -> None:
        """A peer's message; before there is a machine it is lost, as any message may be."""
        if self._node is not None:
            self._node.receive(sender, message)

    def _healthy(self) -> bool:
        return self._node is None or milliseconds() - self._node.turned_at < LOOP_STUCK_MS

    def run(self, node: Node) -> int:
        """Run the machine. SIGTERM: leave the pipeline for good; SIGINT: stop, to come back."""
        signal.signal(signal.SIGTERM, lambda *_: node.tell(Terminate()))
        signal.signal(signal.SIGINT, lambda *_: node.stop())
        self._node = node
        code = node.run()
        self.post.drain(1.0)
        if code == EXIT_COMPLETED:
            # Whoever watches shall see it before everybody is gone.
            time.sleep(LAST_WORDS_SECONDS)
        if code in (0, EXIT_COMPLETED):
            self.volume.leave_clean()
        return code

    def _whole_state(self) -> dict[str, object]:
        events = list(self._node.events) if self._node is not None else []
        return {
            "kind": self.kind,
            "name": self.name,
            "volume": self.volume.id,
            "incarnation": self.volume.incarnation,
            "pid": os.getpid(),
            "uptime_seconds": round(time.monotonic() - self.started, 1),
            "events": [event._asdict() for event in events],
            **self._state(),
        }


def settings_of(pipeline: Pipeline) -> Settings:
    """The protocol's settings for a pipeline."""
    epoch = pipeline.spec.epoch
    return Settings(
        interval=epoch.interval.milliseconds,
        max_epoch_bytes=epoch.max_bytes.count,
        max_chunk_bytes=min(epoch.max_bytes.count, Settings().max_chunk_bytes),
    )


def main(kind: str, add: Callable[[argparse.ArgumentParser], None], run: Callable[..., int]) -> Any:
    """The program of one kind of process: arguments, log, exit code. Does not return."""
    parser = argparse.ArgumentParser(prog=f"tandem-{kind}")
    parser.add_argument("--dir", required=True, help="directory of the pipeline")
    parser.add_argument("--name", required=True, help="name of this member")
    parser.add_argument("--volume", required=True, help="id of the volume to run on")
    add(parser)
    arguments = parser.parse_args()
    logging.basicConfig(
        level=os.environ.get("TANDEM_LOG", "INFO"),
        format=f"%(asctime)s {arguments.name} %(levelname)s %(name)s: %(message)s",
    )
    try:
        code = run(Process(kind, arguments), arguments)
    except VolumeDistrusted as distrust:
        _log.warning("ends: %s", distrust)
        code = EXIT_WIPED
    except Exception:
        _log.exception("%s crashes", arguments.name)
        code = 1
    logging.shutdown()
    sys.stdout.flush()
    # Threads of sources, Spark and Flight must not keep a process that is done.
    os._exit(code)

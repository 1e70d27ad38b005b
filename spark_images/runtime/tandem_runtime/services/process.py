"""Starts, serves and ends every process of a pipeline."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from tandem_core.contract.exit_codes import COMPLETED, FAILED, RETIRED, WIPED
from tandem_core.contract.records import UnknownRecord
from tandem_core.contract.reports import Card, MemberReport, MergeState, ReplicaState, SplitState
from tandem_core.model.pipeline import Pipeline
from tandem_runtime.environment.hosts import Host, host_of
from tandem_runtime.environment.interface import Environment
from tandem_runtime.protocol.log.formats import UnreadableFormat
from tandem_runtime.protocol.types import Peer, ProtocolSettings
from tandem_runtime.services import health
from tandem_runtime.services.event_loop import (
    EventLoop,
    later_version,
    milliseconds,
    stopped_by_later_version,
)
from tandem_runtime.volume.volume import VolumeDistrusted
from tandem_runtime.wire.flight import FlightServer, Post

LOOP_STUCK_MS = 10_000
"""A loop that has not turned for this long counts as stuck."""

_M_ARENA_MAX = -8
"""The number of that setting in glibc's malloc.h."""
_HEAPS = 2

Actions = Mapping[str, Callable[[bytes], bytes]]
Part = SplitState | ReplicaState | MergeState
S = TypeVar("S", bound=Environment)

_log = logging.getLogger(__name__)


class Process(Generic[S]):
    """Volume, environment and servers of a process, set up before its machine."""

    def __init__(self, kind: str, host: Host[S]) -> None:
        self.kind = kind
        self.name = host.name
        self.started = time.monotonic()
        self.volume = host.volume
        self.volume.claim()
        self.environment = host.environment()
        self.peer = Peer(self.volume.id, self.volume.incarnation)
        self.post = Post(self.peer, self.environment.token, self.environment)
        self.settings = settings_of(self.environment.pipeline, self.environment.silence)
        self._host = host
        self._loop: EventLoop | None = None
        self._resting = False
        self._ready: Callable[[], bool] = lambda: False
        self._ports: tuple[int, int] | None = None
        self._part: Callable[[], Part]

    def serve(
        self,
        part: Callable[[], Part],
        ready: Callable[[], bool],
        pair: str | None = None,
        actions: Actions | None = None,
    ) -> None:
        """Serve peers and HTTP, and announce the addresses; called again when one changes."""
        self._part, self._ready = part, ready
        if self._ports is None:
            self._ports = self._listen({**self.environment.actions(), **(actions or {})})
        self.environment.announce(
            Card(
                name=self.name,
                kind=self.kind,
                pair=pair,
                volume=self.volume.id,
                incarnation=self.volume.incarnation,
                host=self._host.listen.host,
                port=self._ports[0],
                http_port=self._ports[1],
                pid=os.getpid(),
            )
        )

    def _listen(self, actions: Actions) -> tuple[int, int]:
        incoming = self.volume.directory / "incoming"
        # An earlier process may have ended in the middle of a copy.
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        listen, token = self._host.listen, self.environment.token
        # It serves from its own threads; its `serve` is not called, which would handle signals.
        server = self._server = FlightServer(
            (listen.host, listen.flight),
            token,
            self.volume.id,
            incoming,
            self._receive,
            actions,
            self._unreadable_entry,
        )
        pages = health.Pages(self.is_healthy, self._is_ready, self._report)
        return server.port, health.serve((listen.host, listen.http), token, pages)

    def _receive(self, sender: Peer, message: object) -> None:
        """Pass on a peer's message; without a machine it is dropped, as any message may be."""
        if self._loop is not None and self.environment.admits(sender.volume):
            self._loop.receive(sender, message)

    def _unreadable_entry(self, problem: str) -> None:
        """Fail on a log entry of a later version: skipping it would make histories diverge."""
        if self._loop is not None:
            self._loop.fail(later_version(UnknownRecord.__name__, problem))

    def is_healthy(self) -> bool:
        """Whether the loop turns; true before it starts and once the pipeline is completed."""
        if self._loop is None or self._resting:
            return True
        return milliseconds() - self._loop.turned_at < LOOP_STUCK_MS

    def is_running(self) -> bool:
        """Whether there is a machine and its loop turns."""
        return self._loop is not None and self.is_healthy()

    def _is_ready(self) -> bool:
        return self.is_healthy() and self._ready()

    def run(self, loop: EventLoop, release: Callable[[], None] = lambda: None) -> int:
        """Run the machine. SIGTERM: leave the pipeline for good; SIGINT: stop, for a restart.

        `release` is called once it has ended, before a process that is needed no more rests.
        """
        self.environment.await_known()
        signal.signal(signal.SIGTERM, lambda *_: loop.leave())
        signal.signal(signal.SIGINT, lambda *_: loop.stop())
        loop.turned_at = milliseconds()
        self._loop = loop
        code = loop.run()
        self._resting = code in (COMPLETED, RETIRED)
        release()
        self.environment.close()
        self.post.drain(1.0)
        if code == 0 or self._resting:
            self.volume.leave_clean()
        return self._host.rest(code) if self._resting else code

    def _report(self) -> MemberReport:
        """The answer to `/state`."""
        return MemberReport(
            volume=self.volume.id,
            incarnation=self.volume.incarnation,
            part=self._part(),
            events=tuple(self._loop.events) if self._loop is not None else (),
            name=self.name,
            pid=os.getpid(),
            uptime_seconds=round(time.monotonic() - self.started, 1),
        )


def settings_of(pipeline: Pipeline, silence: int) -> ProtocolSettings:
    """The protocol's settings for a pipeline; `silence` is its heartbeat timeout."""
    epoch = pipeline.spec.epoch
    return ProtocolSettings(
        interval=epoch.interval.milliseconds,
        silence=silence,
        max_epoch_bytes=epoch.max_bytes.count,
        max_lane_bytes=pipeline.spec.splits.buffer.count,
        max_chunk_bytes=min(epoch.max_bytes.count, ProtocolSettings().max_chunk_bytes),
    )


def main(kind: str, add: Callable[[argparse.ArgumentParser], None], run: Callable[..., int]) -> Any:
    """Run one kind of process: arguments, log, exit code. Does not return."""
    arguments = _arguments(kind, add)
    _share_freed_memory()
    host = host_of(kind, arguments)
    log = logging.StreamHandler()
    log.setFormatter(host.log_format(kind))
    logging.basicConfig(level=logging.INFO, handlers=[log])
    try:
        code = run(Process(kind, host), arguments)
    except VolumeDistrusted as distrust:
        _log.warning("exiting: %s", distrust)
        code = WIPED
    except (UnreadableFormat, UnknownRecord) as problem:
        code = stopped_by_later_version(problem, host.volume)
    except Exception:  # noqa: BLE001 - logged, and becomes the exit code
        _log.exception("%s crashed", host.name)
        code = FAILED
    code = host.leave(code)
    logging.shutdown()
    sys.stdout.flush()
    # Threads of sources, Spark and Flight must not keep a finished process alive.
    os._exit(code)


def _share_freed_memory() -> None:
    """Let all threads share a few heaps, here and in a JVM that is started from here.

    By default glibc makes up to eight per core, and each keeps the memory freed in it.
    """
    os.environ.setdefault("MALLOC_ARENA_MAX", str(_HEAPS))
    with contextlib.suppress(AttributeError, OSError):  # other C libraries have no such setting
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)


def _arguments(kind: str, add: Callable[[argparse.ArgumentParser], None]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"tandem-{kind}")
    parser.add_argument("--in-cluster", action="store_true", help="this is a pod of the pipeline")
    parser.add_argument("--dir", help="directory of the pipeline")
    parser.add_argument("--name", help="name of this member")
    parser.add_argument("--volume", help="id of the volume to run on")
    add(parser)
    arguments = parser.parse_args()
    place = (arguments.dir, arguments.name, arguments.volume)
    if any(place) if arguments.in_cluster else not all(place):
        parser.error("either --in-cluster, or --dir, --name and --volume")
    return arguments

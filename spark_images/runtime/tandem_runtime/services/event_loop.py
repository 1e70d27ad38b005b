"""Runs the state machine of a process: its inbox, and the handlers of its effects.

The loop passes one message or one tick at a time to the machine, and carries out its effects in
order, each done before the next. Work that may take long (a source, Spark, a sink, a peer, the
register) runs in threads of its own and returns as a message.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast

from tandem_core.contract import exit_codes
from tandem_core.contract.records import UnknownRecord
from tandem_core.contract.reports import MemberEvent, MemberRefusal
from tandem_core.logs.json_lines import FIELDS
from tandem_runtime.environment.interface import Environment, VolumeRevoked
from tandem_runtime.protocol.bounded_map import BoundedMap
from tandem_runtime.protocol.effects import (
    Effect,
    Erase,
    Exit,
    Happened,
    Key,
    Select,
    Send,
    Ship,
    Write,
)
from tandem_runtime.protocol.log.formats import UnreadableFormat
from tandem_runtime.protocol.messages.peers import (
    CopiedState,
    CopyChunk,
    NewIntent,
    SplitsDiscovered,
    Standing,
    StateCopied,
    Terminate,
    VolumeGone,
)
from tandem_runtime.protocol.types import Chunk, Peer, ProtocolSettings
from tandem_runtime.services.metrics import EVENTS, MESSAGES, REFUSED_FULL
from tandem_runtime.volume.chunks import read_note
from tandem_runtime.volume.share_cache import Shares
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel, Post
from tandem_runtime.wire.frames import FramePart

INBOX_MESSAGES = 1024
INBOX_BYTES = 64 * 2**20
"""Bounds of the messages of peers that wait in the inbox; beyond them they are dropped [12]."""

LOOK_AROUND_MS = 500
"""How often the environment is polled."""

EVENTS_KEPT = 50
"""How many of the last events each report repeats."""

ROUTINE = frozenset({"DuplicateDropped", "HeaderPublished", "StaleRefused", "Trimmed"})
"""Frequent events are only counted; to log each would hide the others."""

_FOR_GOOD: Mapping[str, int] = {
    Standing.COMPLETED: exit_codes.COMPLETED,
    Standing.RETIRED: exit_codes.RETIRED,
}
"""Exit codes after which a process is not restarted, by the reason of its end."""

_log = logging.getLogger(__name__)


class Machine(Protocol):
    """A state machine of the protocol."""

    def handle(self, now: int, sender: Peer | None, message: Any) -> list[Effect]:
        """Handle a message."""

    def tick(self, now: int) -> list[Effect]:
        """Handle the passing of time."""


class Ended(Exception):
    """The machine is done; the process exits with this code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class Failure(NamedTuple):
    """Why a process cannot continue, and what the user can do."""

    reason: str
    message: str
    hint: str
    final: bool = True
    """Only the user can fix it; otherwise a restart may help."""


def ended_by(failure: Failure, volume: Volume) -> Ended:
    """How a failed process ends; its reason is left on the volume, for the process's parent."""
    volume.refuse(MemberRefusal(reason=failure.reason, message=failure.message, hint=failure.hint))
    code = exit_codes.REFUSED if failure.final else exit_codes.FAILED
    return Ended(f"{failure.reason}: {failure.message}", code)


def later_version(reason: str, problem: str) -> Failure:
    """The failure of a process that meets a later version's format; a newer image can read it."""
    return Failure(reason, problem, "run the image that the rest of the pipeline runs", final=False)


def stopped_by_later_version(problem: UnreadableFormat | UnknownRecord, volume: Volume) -> int:
    """End a process that cannot read the header log; returns its exit code."""
    ended = ended_by(later_version(type(problem).__name__, str(problem)), volume)
    _log.error("exiting: %s", ended)
    return ended.code


_STOP = object()


def milliseconds() -> int:
    """The clock of machines; only differences are meaningful."""
    return time.monotonic_ns() // 1_000_000


class EventLoop:
    """Runs one machine until it exits.

    `listens_to` are the kinds of environment messages that the machine receives, `concerns` the
    volumes whose loss is reported to it.
    """

    def __init__(
        self,
        machine: Machine,
        volume: Volume,
        environment: Environment,
        post: Post,
        settings: ProtocolSettings,
        listens_to: frozenset[type] = frozenset({SplitsDiscovered}),
        concerns: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self.machine = machine
        self.volume = volume
        self.environment = environment
        self.post = post
        self.events: deque[MemberEvent] = deque(maxlen=EVENTS_KEPT)
        self.turned_at = milliseconds()
        """When the loop last turned, for the health check."""
        self._tick_every = settings.beat
        self._inbox: queue.SimpleQueue[tuple[Peer | None, Any, int]] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._bytes_lock = threading.Lock()
        self._looked_at = 0
        self._leaving = False
        self._listens_to = listens_to
        self._concerns = concerns
        self._told: dict[type, object] = {}
        """The last message about the environment that the machine received, by kind."""
        self._told_gone: BoundedMap[bool] = BoundedMap()
        self._shares = Shares(volume.buffer)
        self._hands: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Ship: self._ship,
            Write: self._write,
            Erase: self._erase,
            Happened: self.happened,
            Exit: self._exit,
        }

    def lend(self, hands: Mapping[type, Callable[[Any], None]]) -> None:
        """Add handlers for further kinds of effects; those of the loop cannot be replaced."""
        taken = hands.keys() & self._hands.keys()
        if taken:
            raise ValueError(f"{sorted(kind.__name__ for kind in taken)} are carried out already")
        self._hands.update(hands)

    # --- the inbox ----------------------------------------------------------------------------

    def receive(self, sender: Peer, message: Any) -> None:
        """Queue a peer's message unless the inbox is full; called from the server's threads."""
        size = _payload_bytes(message)
        with self._bytes_lock:
            waiting = self._waiting_bytes
            full = size and waiting and waiting + size > INBOX_BYTES
            if full or self._inbox.qsize() >= INBOX_MESSAGES:
                REFUSED_FULL.inc()
                return
            self._waiting_bytes += size
        self._inbox.put((sender, _prepared(message), size))

    def tell(self, message: Any) -> None:
        """Queue a message of this process's own threads; never dropped."""
        self._inbox.put((None, message, 0))

    def cast_out(self, outcast: VolumeRevoked) -> None:
        """End the process: its volume is recorded as gone."""
        self._inbox.put((None, outcast, 0))

    def stop(self) -> None:
        """End the process now; restarted on its volume, it continues from there."""
        self._inbox.put((None, _STOP, 0))

    def leave(self) -> None:
        """Let the machine hand over what peers need, then end the process."""
        self._leaving = True
        self.tell(Terminate())

    def tell_event(self, event: str, subject: str, detail: str) -> None:
        """Record an event of one of this process's own threads."""
        self.happened(Happened(event, subject, detail))

    def fail(self, failure: Failure) -> None:
        """End the process with a failure."""
        self._inbox.put((None, failure, 0))

    # --- the loop -----------------------------------------------------------------------------

    def run(self) -> int:
        """Run until the machine exits; returns the process's exit code."""
        try:
            self._look_around(milliseconds())
            next_tick = milliseconds()
            while True:
                now = milliseconds()
                self.turned_at = now
                if now >= next_tick:
                    self._look_around(now)
                    self.carry_out(self.machine.tick(now))
                    # Ticks missed in a pause, as of a frozen process, are skipped.
                    next_tick = max(next_tick + self._tick_every, now)
                self._take_one(max(next_tick - milliseconds(), 0) / 1000)
        except Ended as end:
            _log.info("exiting: %s", end)
            return end.code
        except UnreadableFormat as problem:
            return stopped_by_later_version(problem, self.volume)
        except VolumeRevoked as outcast:
            _log.warning("exiting: %s", outcast)
            return exit_codes.WIPED

    def _take_one(self, seconds: float) -> None:
        try:
            sender, message, size = (
                self._inbox.get(timeout=seconds) if seconds else (self._inbox.get_nowait())
            )
        except queue.Empty:
            return
        if size:
            with self._bytes_lock:
                self._waiting_bytes -= size
        if message is _STOP:
            raise Ended("stopped", 0)
        if isinstance(message, VolumeRevoked):
            raise message
        if isinstance(message, Failure):
            raise ended_by(message, self.volume)
        MESSAGES.labels(type(message).__name__).inc()
        self.carry_out(self.machine.handle(milliseconds(), sender, message))

    def carry_out(self, effects: list[Effect]) -> None:
        """Carry out effects, in order."""
        for effect in effects:
            self._hands[type(effect)](effect)

    def _look_around(self, now: int) -> None:
        """Poll the environment; gone volumes first."""
        if self._looked_at and now - self._looked_at < LOOK_AROUND_MS:
            return
        self._looked_at = now
        if self._leaving and self.environment.abandoned():
            raise Ended("the pipeline was deleted", 0)
        self._look_for_gone(now)
        intent = self.environment.intent()
        if intent is not None:
            self._tell_machine(now, NewIntent(intent, self.environment.functions()))
        self._tell_machine(now, SplitsDiscovered(self.environment.splits()))

    def _look_for_gone(self, now: int) -> None:
        asked = self._concerns().difference(self._told_gone)
        gone = self.environment.gone(asked | {self.volume.id})
        if self.volume.id in gone:
            raise VolumeRevoked(f"volume {self.volume.id} is recorded as gone")
        for volume in sorted(gone):
            self._told_gone[volume] = True
            self.carry_out(self.machine.handle(now, None, VolumeGone(volume)))

    def _tell_machine(self, now: int, message: Any) -> None:
        """Pass on a change of the environment, if this kind of machine listens to it."""
        kind = type(message)
        if kind in self._listens_to and self._told.get(kind) != message:
            self._told[kind] = message
            self.carry_out(self.machine.handle(now, None, message))

    # --- handlers of effects ------------------------------------------------------------------

    def _send(self, effect: Send) -> None:
        self.post.send(effect.to, Parcel(effect.message))

    def _ship(self, effect: Ship) -> None:
        """Queue a message; its bytes are read when it is sent: the queue holds only keys [12]."""

        def parts() -> Iterator[FramePart]:
            for index, key in enumerate(effect.keys):
                yield FramePart(index, None, self._bytes(key, effect.select))

        self.post.send(effect.to, Parcel(effect.message, parts))

    def _bytes(self, key: Key, select: Select | None) -> Any:
        if select is None:
            return self.volume.buffer(key)
        if key[0] != "chunk":
            raise ValueError(f"{key} has no share to be cut: only chunks have")
        return self._shares.get(key, select)

    def _write(self, effect: Write) -> None:
        self.volume.write(effect.key, effect.value)

    def _erase(self, effect: Erase) -> None:
        self.volume.erase(effect.key)

    def happened(self, effect: Happened) -> None:
        """Count an event, log it, and keep it for reports."""
        EVENTS.labels(effect.event).inc()
        if effect.event in ROUTINE:
            return
        said = " ".join(filter(None, (effect.event, effect.subject, effect.detail)))
        _log.info("%s", said, extra={FIELDS: effect})
        self.events.append(
            MemberEvent(
                at_ms=_wall_clock(),
                event=effect.event,
                subject=effect.subject,
                detail=effect.detail,
            )
        )

    def _exit(self, effect: Exit) -> None:
        otherwise = exit_codes.WIPED if effect.wipe else exit_codes.STOPPED
        raise Ended(effect.reason, _FOR_GOOD.get(effect.reason, otherwise))


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


def _payload_bytes(message: Any) -> int:
    payload = getattr(message, "payload", None)
    values = payload if isinstance(payload, tuple) else ()
    return sum(len(value) for value in values if hasattr(value, "__len__"))


def _prepared(message: Any) -> Any:
    """Decode the note of a copied chunk, separate copied state from results; copies no bytes."""
    if type(message) is CopyChunk and message.payload is not None:
        (form,) = cast("tuple[Any]", message.payload)
        return message.replace(payload=(Chunk(read_note(form), form),))
    if type(message) is StateCopied and message.payload is not None:
        state, *results = cast("tuple[Any, ...]", message.payload)
        return message.replace(payload=CopiedState(state, tuple(results)))
    return message

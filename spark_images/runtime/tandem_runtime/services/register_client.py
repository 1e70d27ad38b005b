"""Queries the register in a thread of its own: a silent register must not stop a split."""

from __future__ import annotations

import logging
import threading
from collections import deque

from tandem_runtime.environment.interface import Register, RegisterSilent, VolumeRevoked
from tandem_runtime.protocol.effects import ReadRegister, Swap
from tandem_runtime.protocol.messages.peers import RegisterAnswer
from tandem_runtime.services.event_loop import EventLoop, Failure

WAITING = 8
"""Requests that may queue behind an earlier one; beyond that the oldest are dropped [12]."""

_log = logging.getLogger(__name__)


class RegisterWorker:
    """Sends a machine's requests to the register, one at a time, and returns the answers.

    A request may be lost; the machine retries it, and after a swap it reads first.
    """

    def __init__(self, register: Register, loop: EventLoop) -> None:
        self._register = register
        self._loop = loop
        self._asked: deque[Swap | ReadRegister] = deque(maxlen=WAITING)
        self._ready = threading.Condition()
        threading.Thread(target=self._run, name="register", daemon=True).start()

    def ask(self, effect: Swap | ReadRegister) -> None:
        """Queue a request; requests are handled in order."""
        with self._ready:
            self._asked.append(effect)
            self._ready.notify()

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._asked)
                effect = self._asked.popleft()
            try:
                self._loop.tell(self._answer(effect))
            except VolumeRevoked as outcast:
                self._loop.cast_out(outcast)
            except (RegisterSilent, OSError) as silence:
                _log.warning("the register does not answer: %s", silence)
            except Exception as problem:  # noqa: BLE001 - logged, and ends the process
                _log.exception("the register client failed")
                failure = Failure(type(problem).__name__, str(problem), "", final=False)
                self._loop.fail(failure)
                return

    def _answer(self, effect: Swap | ReadRegister) -> RegisterAnswer:
        if isinstance(effect, ReadRegister):
            place = self._register.read_register()
            return RegisterAnswer(effect.op, swapped=False, place=place)
        swapped, place = self._register.swap_register(effect.expected, effect.place)
        return RegisterAnswer(effect.op, swapped, place)

"""The register: lead, buddy and term of a pipeline, behind compare-and-set.

`swap` is what the register does (a Lease object, a sequence of files, the simulator's variable).
`RegisterClient` is how a member uses it when requests and answers may be lost or late, rule (e):
after an unknown result it reads first, and asks again for the same only if nothing changed.
"""

from __future__ import annotations

from tandem_runtime.protocol.effects import Effect, ReadRegister, Swap
from tandem_runtime.protocol.messages.peers import RegisterAnswer
from tandem_runtime.protocol.types import NOBODY, RegisterState


def swap(current: RegisterState, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
    """Return whether a compare-and-set succeeds, and the content after it."""
    if current.version != expected:
        return False, current
    return True, place.replace(version=expected + 1)


class RegisterClient:
    """One member's access to the register: at most one swap under way.

    A swap that was sent is pursued until its outcome is known: it may land late, and its author
    must expect that.
    """

    __slots__ = ("consulted", "known", "_asked_at", "_op", "_swap", "_patience")

    def __init__(self, patience: int) -> None:
        self.known: RegisterState = NOBODY
        """The newest content seen."""
        self.consulted = False
        """Whether this process has read the register. Before that it may take the outcome of a
        former process's swap for its own."""
        self._op = 0
        self._asked_at: int | None = None
        self._swap: Swap | None = None
        self._patience = patience

    @property
    def busy(self) -> bool:
        """Whether a swap is under way."""
        return self._swap is not None

    def propose(self, place: RegisterState, now: int) -> list[Effect]:
        """Try to replace what is known by `place`."""
        self._swap = Swap(self._next(now), self.known.version, place)
        return [self._swap]

    def read(self, now: int) -> list[Effect]:
        """Read the content."""
        return [ReadRegister(self._next(now))]

    def tick(self, now: int) -> list[Effect]:
        """Read again when an answer is overdue (e), and now and then anyway."""
        if self._asked_at is None or now - self._asked_at >= self._patience:
            return self.read(now)
        return []

    def answered(self, answer: RegisterAnswer, now: int) -> tuple[bool | None, list[Effect]]:
        """Take in an answer; return the outcome of the swap if it is known now, and effects."""
        self.consulted = True
        if answer.place.version > self.known.version:
            self.known = answer.place
        pending = self._swap
        if pending is None:
            return None, []
        if self.known.version == pending.expected:
            # Nothing has changed: the swap was lost or is still on its way. Asking for the same
            # again is safe, only one of the two can meet this version.
            if answer.op != self._op:
                return None, []
            self._swap = pending._replace(op=self._next(now))
            return None, [self._swap]
        self._swap = None
        mine = pending.place.replace(version=pending.expected + 1)
        return self.known == mine, []

    def _next(self, now: int) -> int:
        self._op += 1
        self._asked_at = now
        return self._op

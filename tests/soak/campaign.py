"""Makes faults in a running pipeline, one after the other and several at once."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.laptop.harness import POLL_SECONDS, Run
from tests.laptop.output import Output
from tests.soak.changes import Change, ChangeMade, ask_for, ended
from tests.soak.plan import Act, Fault, Target
from tests.soak.targets import standing_of, who_is

from tandem.output.member_table import Missing

PRESENT_WITHIN = 120.0
"""Seconds that a target may take to come back from an earlier fault."""
CHANGED_WITHIN = 900.0
"""Seconds that a change may take among faults: longer than the policy waits before it gives up."""
PROGRESS_WITHIN = 240.0
"""Seconds that delivery may take to go on, also where all drivers start on a busy machine."""


class CompletedEarly(Exception):
    """The pipeline was through before all faults were made."""


@dataclass(frozen=True, slots=True)
class Made:
    """A fault that was made."""

    fault: Fault
    who: str
    at: float
    """Seconds since the campaign began."""
    delivered: int
    """The last epoch then delivered."""
    standing: str = ""
    """That of the pair of a replica that is built or retired: shadow or muted."""
    changing: bool = False
    """Whether a change was under way."""


@dataclass(slots=True)
class Campaign:
    """The faults of one run, and who is frozen at the moment."""

    run: Run
    output: Output
    progress: Callable[[Made], None] = lambda _: None
    told: Callable[[ChangeMade], None] = lambda _: None
    """Called with each change once it has ended."""
    made: list[Made] = field(default_factory=list)
    changed: list[ChangeMade] = field(default_factory=list)
    starts: int = 1
    """How often `tandem run` was started."""
    _changing: ChangeMade | None = None
    _frozen: dict[int, float] = field(default_factory=dict)
    """Process groups, or the supervisor's process as a negative number, and when each goes on."""

    def carry_out(self, acts: Iterable[Fault | Change]) -> None:
        """Make all faults and changes, then let everybody go on.

        Between groups of faults something is delivered: faults in a pipeline that is not under way
        would show little. A change begins once the one before it has ended.

        Raises:
            CompletedEarly: the pipeline ended before that.
            AssertionError: the pipeline ended in another way, or a target does not come back.
        """
        began = time.monotonic()
        for act in acts:
            if isinstance(act, Change):
                self._see_changes_end()
                self._changing = ask_for(self.run, act)
                continue
            fault = act
            self._pause(time.monotonic() + fault.after)
            if self.made and not fault.together:
                self._see_progress(self.made[-1].delivered)
            who, standing = self._make(fault)
            at, last = time.monotonic() - began, self.output.last()
            changing = self._changing is not None and ended(self.run, self._changing) is None
            made = Made(fault, who, at, last, standing, changing)
            self.made.append(made)
            self.progress(made)
        self._pause(max(self._frozen.values(), default=0.0))
        self._see_changes_end()

    def _see_changes_end(self) -> None:
        """Wait for the end of the change under way, if there is one."""
        found: list[ChangeMade] = []

        def is_over() -> bool:
            made = None if self._changing is None else ended(self.run, self._changing)
            found.extend([made] if made is not None else [])
            return made is not None

        if self._changing is None:
            return
        self._wait(is_over, time.monotonic() + CHANGED_WITHIN)
        self._changing = None
        self.changed.append(found[-1])
        self.told(found[-1])

    # --- making -------------------------------------------------------------------------------

    def _make(self, fault: Fault) -> tuple[str, str]:
        """Make a fault; return who was hit, and the standing of its pair."""
        if fault.target is Target.SUPERVISOR:
            self._at_supervisor(fault)
            return "tandem run", ""
        found: list[tuple[str, int]] = []
        standing = ""

        def hit() -> bool:
            nonlocal standing
            who = who_is(self.run, fault.target, fault.index)
            if who is None:
                return False
            standing = standing_of(self.run, who)
            number = signal.SIGKILL if fault.act is Act.KILL else signal.SIGSTOP
            try:
                found.append(self.run.signal(who, number))
            except Missing:
                return False
            return True

        self._wait(hit, time.monotonic() + PRESENT_WITHIN)
        name, pid = found[0]
        self._frozen.pop(pid, None)
        if fault.act is Act.FREEZE:
            self._frozen[pid] = time.monotonic() + fault.frozen
        return name, standing

    def _at_supervisor(self, fault: Fault) -> None:
        pid = self.run.supervisor.pid
        self._frozen.pop(-pid, None)
        if fault.act is Act.FREEZE:
            os.kill(pid, signal.SIGSTOP)
            self._frozen[-pid] = time.monotonic() + fault.frozen
            return
        self.run.kill_supervisor()
        # Everybody dies with it, the frozen ones too.
        self._frozen.clear()
        self.run.start()
        self.starts += 1

    # --- waiting ------------------------------------------------------------------------------

    def _see_progress(self, before: int) -> None:
        deadline = time.monotonic() + PROGRESS_WITHIN
        self._wait(lambda: self.output.last() > before + 1, deadline)

    def _pause(self, until: float) -> None:
        self._wait(lambda: time.monotonic() >= until, math.inf)

    def _wait(self, condition: Callable[[], bool], deadline: float) -> None:
        """Wait while frozen processes are let go in time."""
        while not condition():
            self._thaw()
            if self.run.supervisor.poll() is not None:
                self._ended()
            assert time.monotonic() < deadline, (
                "a target does not come back, nothing is delivered, or a change does not end"
            )
            time.sleep(POLL_SECONDS)
        self._thaw()

    def _thaw(self) -> None:
        now = time.monotonic()
        for who in [who for who, until in self._frozen.items() if until <= now]:
            del self._frozen[who]
            try:
                os.kill(-who, signal.SIGCONT)
            except ProcessLookupError:
                continue

    def _ended(self) -> None:
        code = self.run.supervisor.returncode
        if code == 0 and self.run.status()["phase"] == "Completed":
            raise CompletedEarly
        raise AssertionError(f"`tandem run` ended with exit code {code}")

"""Triggers: moments at which a fault strikes, named by what a process does.

A moment is named after an effect (`Swap`, `Send:CopyEntry`, `Ship:Answer`, `Write:header`), after
an event that a machine reports (`HeaderPublished`, `GenerationCut`), or after an action of a shell
(`CheckpointWritten`, `SwapLanded`, `TargetSet`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from tandem_runtime.protocol.effects import Effect, Happened, Send, Ship, Write
from tandem_runtime.protocol.log.header_log import StoredEntry
from tandem_runtime.protocol.types import Header

if TYPE_CHECKING:
    from tandem_simulator.engine.process import SimulatedProcess


class TriggerPoint(NamedTuple):
    """When a stage of a script begins: at the n-th occurrence of a moment."""

    label: str
    nth: int = 1
    before: bool = False
    """Whether to strike just before the effect is carried out, instead of just after."""
    role: str = ""
    """Only for this process: `lead`, `buddy`, or the name of an earlier stage's process."""


class Trigger:
    """An armed trigger."""

    __slots__ = ("fire", "left", "moment", "suits")

    def __init__(
        self,
        moment: TriggerPoint,
        suits: Callable[[SimulatedProcess | None, str], bool],
        fire: Callable[[SimulatedProcess | None, object], None],
    ) -> None:
        self.moment = moment
        self.left = moment.nth
        self.suits = suits
        self.fire = fire


_LABELS: dict[tuple[type, type], str] = {}


def label_of(effect: Effect) -> str:
    """The name of the moment at which an effect is carried out."""
    kind = type(effect)
    if kind is Happened:
        return effect.event  # type: ignore[union-attr]
    if kind is Write:
        return _label_of_write(cast("Write", effect))
    inner = type(effect.message) if kind is Send or kind is Ship else kind  # type: ignore[union-attr]
    label = _LABELS.get((kind, inner))
    if label is None:
        name = kind.__name__
        label = name if inner is kind else f"{name}:{inner.__name__}"
        _LABELS[kind, inner] = label
    return label


def _label_of_write(effect: Write) -> str:
    what = str(effect.key[0])
    if what == "entry" and isinstance(cast("StoredEntry", effect.value).entry, Header):
        what = "header"
    return f"Write:{what}"


class TriggerWatch:
    """All armed triggers, by label. Usually empty, and then free."""

    __slots__ = ("armed",)

    def __init__(self) -> None:
        self.armed: dict[str, list[Trigger]] = {}

    def arm(self, trigger: Trigger) -> None:
        """Arm a trigger."""
        self.armed.setdefault(trigger.moment.label, []).append(trigger)

    def disarm_all(self) -> None:
        """Disarm all triggers."""
        self.armed.clear()

    def occur(
        self, label: str, process: SimulatedProcess | None, what: object, *, before: bool
    ) -> None:
        """Count an occurrence, and fire the triggers that are due."""
        waiting = self.armed.get(label)
        if waiting is None:
            return
        due = []
        for trigger in waiting:
            moment = trigger.moment
            if moment.before is before and (not moment.role or trigger.suits(process, moment.role)):
                trigger.left -= 1
                if trigger.left <= 0:
                    due.append(trigger)
        for trigger in due:
            waiting.remove(trigger)
        if not waiting:
            self.armed.pop(label, None)
        for trigger in due:
            trigger.fire(process, what)

"""Breaks and resizes the pipeline on the cluster: a killed pod, a lost worker, one pair more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from cluster.steps import StepFailed
from cluster.trial.pipeline import TrialPipeline
from cluster.trial.stage import Stage
from cluster.trial.waiting import PASSING
from cluster.trial.watching import ObservedChange, told

from demo.changes import Resize, follow
from demo.failures import Failure, Told, now, overcome, wait
from demo.payments import Payments
from demo.scenario import (
    LAST_SECONDS,
    MORE_PAIRS,
    QUIET_EPOCHS,
    WARM_EPOCHS,
    all_delivered,
    all_paired,
)
from tandem_core.model.pipeline import Refusal, parse_status
from tandem_core.model.states import Role
from tandem_core.model.status import Status

PAIRS = ("pair-0", "pair-1")
START_SECONDS = 300.0
RECOVERY_SECONDS = 240.0
"""A lost node is noticed after half a minute; then all its pods start on one node."""
RESIZE_SECONDS = 480.0
"""Four drivers start beside four that work."""


@dataclass(slots=True)
class KindStory:
    """Breaks and resizes, reports it, and ends when all payments are delivered."""

    stage: Stage
    pipeline: TrialPipeline
    payments: Payments
    say: Callable[[str], None]
    failures: list[Failure] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)
    warm_at: float | None = None
    """When the pipeline had warmed up, in seconds since 1970."""
    status: Status = field(default_factory=Status)
    """The status when it was last read."""

    def play(self) -> None:
        """Run the demonstration to its end.

        Raises:
            StepFailed: a step took too long.
        """
        self._until(lambda: all_paired(self._look()), START_SECONDS, "all pairs have both replicas")
        self.say("Four driver pods are ready, two for every key. Payments start.")
        self.payments.begin()
        self._until_delivered(WARM_EPOCHS)
        self.warm_at = now()
        self._until_delivered(QUIET_EPOCHS)
        self._kill_driver()
        self._lose_node()
        for pairs in (MORE_PAIRS, len(PAIRS)):
            self._resize(pairs)
        self.payments.end()
        self.say("Payments stop. The remaining ones are delivered.")
        written = self.payments.written
        self._until(
            lambda: all_delivered(self._look(), written), LAST_SECONDS, "all payments are delivered"
        )

    def _kill_driver(self) -> None:
        victim = self.pipeline.replica(PAIRS[0], Role.PRIMARY)
        self._fail(PAIRS[:1], "primary's pod killed")
        self.pipeline.delete_now(victim)
        self.say(f"{victim.name}, the primary of {PAIRS[0]}, is force-deleted.")
        self._until_whole_again()

    def _lose_node(self) -> None:
        node = self.stage.replaceable_node()
        self.say(f"The worker {node} is stopped, and with it one replica of each pair.")
        self._fail(PAIRS, "node lost")
        with self.stage.nodes.stopped(node):
            self.say(f"{node} is not ready. Its pods are replaced on the other worker.")
            self._until_whole_again()
        self.say(f"{node} is ready again.")

    def _resize(self, pairs: int) -> None:
        before = len(self._look().pairs)
        resize = Resize(before, pairs, now())
        self.resizes.append(resize)
        command = ["scale", f"stp/{self.pipeline.name}", f"--replicas={pairs}"]
        self.say(f"{before} pairs become {pairs}: kubectl {' '.join(command)}")
        self.pipeline.space.kubectl(*command)
        self._until(lambda: self._is_done(resize), RESIZE_SECONDS, f"there are {pairs} pairs")
        self.say(f"{pairs} pairs run; the pods of the replaced ones are deleted.")

    def _is_done(self, resize: Resize) -> bool:
        follow(resize, self._told())
        return resize.done_at is not None and all_paired(self._look())

    def _fail(self, pairs: Iterable[str], what: str) -> None:
        at = now()
        self.failures += [Failure(pair, what, at) for pair in pairs]

    def _until_whole_again(self) -> None:
        self._until(self._all_whole_again, RECOVERY_SECONDS, "all pairs have both replicas again")

    def _all_whole_again(self) -> bool:
        return overcome(self.failures, self._told(), self.say) and all_paired(self._look())

    def _told(self) -> list[Told]:
        return events_of(self.pipeline.space.events.changes(), self.pipeline.name)

    def _until_delivered(self, epochs: int) -> None:
        wanted = self._look().epoch.delivered + epochs
        what = f"epoch {wanted} is delivered"
        self._until(lambda: self._look().epoch.delivered >= wanted, START_SECONDS, what)

    def _until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        if not wait(condition, seconds):
            raise StepFailed(f"not within {seconds:g} s: {what}")

    def _look(self) -> Status:
        """The status; the last known one while the API server does not answer."""
        try:
            parsed = parse_status(self.pipeline.status())
        except PASSING:
            return self.status
        self.status = Status() if isinstance(parsed, Refusal) else parsed
        return self.status


def events_of(changes: Iterable[ObservedChange], pipeline: str) -> list[Told]:
    """The events about a pipeline with their times, from changes of Event objects."""
    return [
        Told(_time(change), each.reason, each.subject)
        for change in changes
        for each in told([change], pipeline)
    ]


def _time(change: ObservedChange) -> float:
    return datetime.fromisoformat(change.document["eventTime"]).timestamp()

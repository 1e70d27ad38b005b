from collections.abc import Iterator

import pytest

from tandem_cli.waiting import Progress, Version, progress_of, wait_until_ready
from tandem_core.model.states import ConditionStatus, ConditionType, PairState, Phase
from tandem_core.model.status import Condition, PairStatus, Status

WHOLE, LACKING = (True, True), (True, False)


def status(
    phase: Phase = Phase.RUNNING, pairs: tuple[bool, ...] = WHOLE, *, ready: bool = True
) -> Status:
    """A status whose pairs have all their replicas or not."""
    condition = Condition(
        type=ConditionType.READY,
        status=ConditionStatus.TRUE if ready else ConditionStatus.FALSE,
        reason="Delivering",
        message="",
        last_transition_time="2024-01-01T00:00:00Z",
    )
    found = tuple(
        PairStatus(name=f"pair-{number}", state=PairState.PAIRED, ready=whole)
        for number, whole in enumerate(pairs)
    )
    return Status(phase=phase, pairs=found, conditions=(condition,))


@pytest.mark.parametrize(
    ("found", "progress"),
    [
        (status(), Progress.READY),
        (status(pairs=LACKING), Progress.WAITING),
        (status(pairs=()), Progress.WAITING),
        (status(ready=False), Progress.WAITING),
        (Status(), Progress.WAITING),
        (status(Phase.COMPLETED, ready=False), Progress.READY),
        (status(Phase.HALTED), Progress.STOPPED),
        (status(Phase.REFUSED), Progress.STOPPED),
    ],
)
def test_ready_means_delivering_with_all_replicas(found: Status, progress: Progress) -> None:
    assert progress_of(found) is progress


def waited(*looks: Version | None) -> tuple[Progress, int]:
    """How waiting for ten seconds ends, and how many looks it took; the last look repeats."""
    passed = [0.0]
    used = 0

    def each() -> Iterator[Version | None]:
        yield from looks
        while True:
            yield looks[-1]

    coming = each()

    def look() -> Version | None:
        nonlocal used
        used += 1
        return next(coming)

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    ended = wait_until_ready(look, 10, lambda _: None, clock=lambda: passed[0], sleep=sleep)
    return ended, used


def test_status_from_before_the_command_is_ignored() -> None:
    old, under_way, fresh = (Version(status(), number) for number in range(3))
    assert waited(old, old, under_way, fresh) == (Progress.READY, 4)


def test_unchanging_status_is_not_ready() -> None:
    assert waited(Version(status(), 1))[0] is Progress.WAITING


def test_wait_lasts_through_failover() -> None:
    lacking = [Version(status(pairs=LACKING), number) for number in range(5)]
    assert waited(*lacking, Version(status(), 6)) == (Progress.READY, 6)


def test_wait_covers_pipeline_created_later() -> None:
    ready = [Version(status(), number) for number in range(3)]
    assert waited(None, None, *ready) == (Progress.READY, 5)


def test_halted_pipeline_ends_wait() -> None:
    halted = [Version(status(Phase.HALTED), number) for number in range(3)]
    assert waited(*halted)[0] is Progress.STOPPED


def test_wait_times_out() -> None:
    assert waited(None)[0] is Progress.WAITING

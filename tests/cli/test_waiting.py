from collections.abc import Iterator

import pytest

from tandem_cli.waiting import Progress, Version, progress_of, wait_until_ready
from tandem_core.model.states import ConditionStatus, ConditionType, Phase
from tandem_core.model.status import Condition, Status


def status(phase: Phase = Phase.RUNNING, pairs: str = "2/2", *, ready: bool = True) -> Status:
    condition = Condition(
        type=ConditionType.READY,
        status=ConditionStatus.TRUE if ready else ConditionStatus.FALSE,
        reason="Delivering",
        message="",
        last_transition_time="2024-01-01T00:00:00Z",
    )
    return Status(phase=phase, pairs_ready=pairs, conditions=(condition,))


@pytest.mark.parametrize(
    ("found", "progress"),
    [
        (status(), Progress.READY),
        (status(pairs="1/2"), Progress.WAITING),
        (status(pairs="0/0"), Progress.WAITING),
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


def test_a_status_from_before_the_command_does_not_count() -> None:
    old, under_way, fresh = (Version(status(), number) for number in range(3))
    assert waited(old, old, under_way, fresh) == (Progress.READY, 4)


def test_a_status_that_is_never_written_again_is_not_ready() -> None:
    assert waited(Version(status(), 1))[0] is Progress.WAITING


def test_a_failover_is_waited_for() -> None:
    lacking = [Version(status(pairs="1/2"), number) for number in range(5)]
    assert waited(*lacking, Version(status(), 6)) == (Progress.READY, 6)


def test_a_pipeline_may_appear_later() -> None:
    ready = [Version(status(), number) for number in range(3)]
    assert waited(None, None, *ready) == (Progress.READY, 5)


def test_a_halted_pipeline_ends_the_wait() -> None:
    halted = [Version(status(Phase.HALTED), number) for number in range(3)]
    assert waited(*halted)[0] is Progress.STOPPED


def test_the_wait_ends_with_its_time() -> None:
    assert waited(None)[0] is Progress.WAITING

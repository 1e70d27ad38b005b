"""What the measurement of failures judges."""

import pytest
from bench.streaming.failover import FROZEN, KILLED, Case, Failure, Options, describe
from bench.streaming.oracle import Verdict

RIGHT = Verdict(fed=10, delivered=5, epochs=4, missing=0, surplus=0, skipped=0)


def judged(interval_ms: int, *gaps: float) -> str:
    failures = tuple(Failure(gap, gap, gap + 10, (0.0, gap)) for gap in gaps)
    cases = [Case(name, 100, failures, (0.1,), RIGHT) for name in (KILLED, FROZEN)]
    return describe(cases, Options(len(gaps), 1_000, interval_ms, 1024))


@pytest.mark.parametrize(
    ("gaps", "reached", "missed"),
    [((0.2, 0.25, 0.6), 4, 0), ((0.2, 0.25, 0.61), 2, 2), ((0.3, 0.3, 0.4), 2, 2)],
)
def test_short_epochs_have_targets_of_median_and_worst(
    gaps: tuple[float, ...], reached: int, missed: int
) -> None:
    told = judged(125, *gaps)
    assert (told.count(": reached"), told.count("NOT REACHED")) == (reached, missed)
    assert "target at most 250 ms" in told
    assert "target at most 600 ms" in told


def test_usual_epochs_have_a_target_of_the_median_alone() -> None:
    told = judged(500, 0.9, 1.0, 5.0)
    assert (told.count(": reached"), told.count("REACHED")) == (2, 0)

"""Waiting ends when a condition holds, goes on through passing trouble, and tells what was left."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from cluster.steps import StepFailed
from cluster.trial.waiting import InVain, until, until_none

from tandem.kube.port import Unreachable

Answer = TypeVar("Answer")


def one_after_the_other(*answers: Answer | Exception) -> Callable[[], Answer]:
    """A condition that answers, or fails, in this order."""
    left: Iterator[Answer | Exception] = iter(answers)

    def condition() -> Answer:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return condition


def test_until_returns_first_truthy_answer() -> None:
    assert until(one_after_the_other(None, "", "there"), 10, "somebody is there") == "there"


def test_transient_errors_count_as_not_yet() -> None:
    trouble = (StepFailed("kubectl failed"), Unreachable("no answer"))
    assert until(one_after_the_other(*trouble, True), 10, "it is well")


def test_programming_error_is_raised_at_once() -> None:
    with pytest.raises(KeyError):
        until(one_after_the_other(KeyError("status"), True), 10, "it is well")


def test_timeout_reports_last_error() -> None:
    def fails() -> bool:
        raise StepFailed("no such pod")

    with pytest.raises(InVain, match=r"not within 0\.3 s: it is there: no such pod"):
        until(fails, 0.3, "it is there")


def test_until_none_reports_remaining_problems() -> None:
    until_none(one_after_the_other(["one is missing"], []), 10, "all are there")
    with pytest.raises(InVain, match="all are there; one is missing; another too"):
        until_none(lambda: ["one is missing", "another too"], 0.3, "all are there")

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


def test_what_the_condition_answered_is_given() -> None:
    assert until(one_after_the_other(None, "", "there"), 10, "somebody is there") == "there"


def test_passing_trouble_counts_as_not_yet() -> None:
    trouble = (StepFailed("kubectl failed"), Unreachable("no answer"))
    assert until(one_after_the_other(*trouble, True), 10, "it is well")


def test_a_mistake_is_not_passing() -> None:
    with pytest.raises(KeyError):
        until(one_after_the_other(KeyError("status"), True), 10, "it is well")


def test_the_limit_is_kept_and_the_last_trouble_told() -> None:
    def fails() -> bool:
        raise StepFailed("no such pod")

    with pytest.raises(InVain, match=r"not within 0\.3 s: it is there: no such pod"):
        until(fails, 0.3, "it is there")


def test_troubles_that_are_left_are_told() -> None:
    until_none(one_after_the_other(["one is missing"], []), 10, "all are there")
    with pytest.raises(InVain, match="all are there; one is missing; another too"):
        until_none(lambda: ["one is missing", "another too"], 0.3, "all are there")

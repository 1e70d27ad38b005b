"""Timeouts given as flags."""

import argparse

import pytest

from tandem.control.reconcile import CLUSTER_LIMITS
from tandem.handlers.__main__ import main
from tandem.handlers.timeout_flags import add_timeouts, timeouts_of
from tandem.policy.timeouts import Timeouts

IMAGES = ["--runtime-image=r", "--spark-image=s"]


def timeouts(*arguments: str) -> Timeouts:
    parser = argparse.ArgumentParser()
    add_timeouts(parser)
    return timeouts_of(parser.parse_args(arguments))


def test_default_timeouts_apply_without_flags() -> None:
    assert timeouts() == CLUSTER_LIMITS


def test_flags_set_the_timeouts() -> None:
    set_by_flags = timeouts(
        "--failover-timeout=10s", "--replacement-timeout=1m30s", "--relocation-timeout=2m"
    )
    assert (set_by_flags.unheard, set_by_flags.hung) == (10.0, 90.0)
    assert (set_by_flags.between_moves, set_by_flags.most_between_moves) == (120.0, 1920.0)
    assert set_by_flags.boot == CLUSTER_LIMITS.boot


@pytest.mark.parametrize(
    "wrong",
    [
        ["--failover-timeout=2999ms"],
        ["--failover-timeout=5"],
        ["--failover-timeout=soon"],
        ["--replacement-timeout=61m"],
        ["--relocation-timeout=9s"],
        ["--failover-timeout=30s", "--replacement-timeout=30s"],
    ],
    ids=" ".join,
)
def test_invalid_timeouts_stop_operator_with_usage_error(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*IMAGES, *wrong])
    assert ended.value.code == 2
    assert wrong[-1].partition("=")[0] in capsys.readouterr().err

"""Times that hang together."""

from __future__ import annotations

import pytest

from tandem_runtime.protocol.types import ProtocolSettings


@pytest.mark.parametrize("interval", [50, 250, 500, 1000, 5000, 3_600_000])
def test_peers_hear_of_each_other_several_times_in_every_silence(interval: int) -> None:
    settings = ProtocolSettings(interval=interval)
    assert settings.beat <= settings.heartbeat_every
    assert 4 * settings.heartbeat_every <= settings.copy_silence < settings.silence


@pytest.mark.parametrize(("interval", "retry"), [(50, 200), (500, 500), (3_600_000, 500)])
def test_an_answer_is_asked_for_again_after_a_time_that_people_would_wait(
    interval: int, retry: int
) -> None:
    assert ProtocolSettings(interval=interval).retry == retry


@pytest.mark.parametrize("interval", [50, 250, 500])
def test_and_twice_in_a_short_epoch(interval: int) -> None:
    assert ProtocolSettings(interval=interval).beat == interval // 2

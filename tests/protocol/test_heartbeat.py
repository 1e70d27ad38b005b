"""How often the same is said again."""

from itertools import pairwise

import pytest

from tandem_runtime.protocol.heartbeat import Heartbeat
from tandem_runtime.protocol.types import ProtocolSettings


def said_at(settings: ProtocolSettings, ticks: int, jitter: int = 0) -> list[int]:
    heartbeat = Heartbeat(settings)
    times = [number * settings.beat + jitter * (number % 2) for number in range(ticks)]
    return [now for now in times if heartbeat.is_due("alive", now)]


@pytest.mark.parametrize("jitter", [0, 1, 3])
@pytest.mark.parametrize("interval", [20, 50, 100, 250])
def test_unchanged_report_is_repeated_several_times_per_silence_but_not_every_tick(
    interval: int, jitter: int
) -> None:
    settings = ProtocolSettings(interval=interval)
    said = said_at(settings, 1000, jitter)
    pauses = [later - earlier for earlier, later in pairwise(said)]
    assert max(pauses) <= 1.5 * settings.heartbeat_every
    assert min(pauses) >= 2 * settings.beat - jitter


@pytest.mark.parametrize("interval", [500, 600, 5000])
def test_every_tick_is_used_if_ticks_are_infrequent(interval: int) -> None:
    settings = ProtocolSettings(interval=interval)
    assert len(said_at(settings, 100)) == 100


def test_changed_report_is_due_at_once() -> None:
    heartbeat = Heartbeat(ProtocolSettings(interval=100))
    assert heartbeat.is_due(1, 0)
    assert not heartbeat.is_due(1, 50)
    assert heartbeat.is_due(2, 51)
    assert not heartbeat.is_due(2, 100)
    assert heartbeat.is_due(1, 101)

"""How often the same is said again."""

from itertools import pairwise

import pytest

from tandem_runtime.protocol.heartbeat import Words
from tandem_runtime.protocol.types import Settings


def said_at(settings: Settings, ticks: int, jitter: int = 0) -> list[int]:
    words = Words(settings)
    times = [number * settings.beat + jitter * (number % 2) for number in range(ticks)]
    return [now for now in times if words.worth("alive", now)]


@pytest.mark.parametrize("jitter", [0, 1, 3])
@pytest.mark.parametrize("interval", [20, 50, 100, 250])
def test_the_same_is_said_several_times_in_every_silence_and_not_at_every_tick(
    interval: int, jitter: int
) -> None:
    settings = Settings(interval=interval)
    said = said_at(settings, 1000, jitter)
    pauses = [later - earlier for earlier, later in pairwise(said)]
    assert max(pauses) <= 1.5 * settings.heard_every
    assert min(pauses) >= 2 * settings.beat - jitter


@pytest.mark.parametrize("interval", [500, 600, 5000])
def test_where_ticks_are_no_more_frequent_than_that_all_are_used(interval: int) -> None:
    settings = Settings(interval=interval)
    assert len(said_at(settings, 100)) == 100


def test_news_is_said_at_once() -> None:
    words = Words(Settings(interval=100))
    assert words.worth(1, 0)
    assert not words.worth(1, 50)
    assert words.worth(2, 51)
    assert not words.worth(2, 100)
    assert words.worth(1, 101)

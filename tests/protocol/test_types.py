"""Times that hang together."""

from __future__ import annotations

import pytest

from tandem_runtime.environment.pod_base import PodEnvironment
from tandem_runtime.protocol.types import ProtocolSettings


@pytest.mark.parametrize("interval", [50, 250, 500, 1000, 5000, 3_600_000])
def test_several_heartbeats_fit_into_every_silence(interval: int) -> None:
    settings = ProtocolSettings(interval=interval)
    assert settings.beat <= settings.heartbeat_every
    assert 4 * settings.heartbeat_every <= settings.copy_silence < settings.silence


@pytest.mark.parametrize(("interval", "retry"), [(50, 200), (500, 500), (3_600_000, 500)])
def test_retry_interval_is_bounded(interval: int, retry: int) -> None:
    assert ProtocolSettings(interval=interval).retry == retry


@pytest.mark.parametrize("interval", [50, 250, 500])
def test_beat_is_half_of_short_interval(interval: int) -> None:
    assert ProtocolSettings(interval=interval).beat == interval // 2


DEFAULTS = ProtocolSettings()
ON_CLUSTER = DEFAULTS._replace(silence=PodEnvironment.silence)

everywhere = pytest.mark.parametrize("settings", [DEFAULTS, ON_CLUSTER], ids=["laptop", "cluster"])


@everywhere
def test_buddy_is_dropped_before_lead_or_merge_is_missed(settings: ProtocolSettings) -> None:
    assert settings.copy_silence < settings.silence


@everywhere
def test_drivers_compute_until_a_lost_merge_is_missed(settings: ProtocolSettings) -> None:
    assert settings.silence < settings.max_undelivered * settings.interval


@everywhere
def test_silent_replica_lapses_before_one_that_is_only_behind(settings: ProtocolSettings) -> None:
    assert max(settings.silence, 2 * settings.interval) < settings.max_full


@everywhere
def test_rebuild_waits_longer_for_some_than_for_all(settings: ProtocolSettings) -> None:
    assert 2 * settings.silence < settings.patience


def test_unit_of_a_stage_fits_into_what_the_next_one_takes() -> None:
    assert DEFAULTS.max_uncommitted < DEFAULTS.max_undelivered
    assert DEFAULTS.max_undelivered <= DEFAULTS.window
    assert DEFAULTS.max_uncommitted <= DEFAULTS.headers_per_view <= DEFAULTS.max_undelivered


def test_outboxes_are_full_before_lanes() -> None:
    assert DEFAULTS.max_undelivered * DEFAULTS.max_epoch_bytes <= DEFAULTS.max_lane_bytes


def test_epoch_has_room_for_several_chunks() -> None:
    assert 4 * DEFAULTS.max_chunk_bytes <= DEFAULTS.max_epoch_bytes


def test_epochs_that_twins_may_be_apart_are_neither_skipped_nor_a_lack_of_sync() -> None:
    assert DEFAULTS.synced_within < DEFAULTS.max_uncommitted <= DEFAULTS.skips_beyond


def test_replica_that_waits_for_a_copy_does_not_lapse() -> None:
    assert DEFAULTS.retry < DEFAULTS.skip_patience < DEFAULTS.max_full


def test_snapshot_takes_in_more_entries_than_one_view_has() -> None:
    assert DEFAULTS.headers_per_view < DEFAULTS.entries_before_snapshot

"""Orderings of timeouts on which the policies rest."""

import pytest

from tandem.control.reconcile import CLUSTER_LIMITS
from tandem.local.supervisor import FRESH
from tandem.policy.timeouts import Timeouts
from tandem_core.network.member_client import PATIENCE, PERIOD
from tandem_runtime.environment.laptop import Laptop
from tandem_runtime.environment.pod_base import PodEnvironment

LAPTOP = Timeouts()
KUBELET = 60.0
"""Seconds after which the liveness probe restarts a container."""

both = pytest.mark.parametrize("limits", [LAPTOP, CLUSTER_LIMITS], ids=["laptop", "cluster"])


@both
def test_twin_is_promoted_before_its_primary_is_killed(limits: Timeouts) -> None:
    assert limits.unheard < limits.hung < limits.boot


@both
def test_one_late_answer_does_not_cost_the_primary_its_role(limits: Timeouts) -> None:
    assert limits.unheard > PERIOD + PATIENCE


@pytest.mark.parametrize(
    ("limits", "silence"),
    [(LAPTOP, Laptop.silence), (CLUSTER_LIMITS, PodEnvironment.silence)],
    ids=["laptop", "cluster"],
)
def test_data_plane_misses_members_first(limits: Timeouts, silence: int) -> None:
    assert silence / 1000 < limits.unheard


def test_lead_report_is_not_older_than_a_silent_replica() -> None:
    assert LAPTOP.unheard >= FRESH


def test_operator_replaces_hung_pod_before_kubelet_restarts_it() -> None:
    assert CLUSTER_LIMITS.hung < KUBELET


@both
def test_leaving_member_is_restarted_before_it_would_count_as_hung(limits: Timeouts) -> None:
    assert limits.leaving < limits.hung


@both
def test_restart_delays_double_from_second_crash_to_bound_below_a_healthy_run(
    limits: Timeouts,
) -> None:
    delays = [limits.delay_after(crashes) for crashes in range(1, 9)]
    assert delays == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert limits.delay_after(10_000) == limits.most_delay < limits.healthy


@both
def test_moved_pod_that_hangs_is_replaced_before_next_move(limits: Timeouts) -> None:
    assert limits.hung < limits.between_moves


@both
def test_pauses_between_moves_double_four_times(limits: Timeouts) -> None:
    pauses = [limits.pause_after(moves) for moves in range(1, 7)]
    assert pauses == [60.0, 120.0, 240.0, 480.0, 960.0, 960.0]
    assert limits.pause_after(10_000) == limits.most_between_moves

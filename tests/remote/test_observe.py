"""The status of a pipeline on a cluster, as somebody outside sees it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.control.world import KEY, resource
from tests.kube.cluster import Cluster
from tests.remote.stage import BEGAN, LATER, Stage

from tandem.control.types import Key
from tandem.kube.kinds import REPLICA_SET
from tandem.kube.objects import name_of, uid_of
from tandem.kube.port import NotFound, Refused, Unreachable
from tandem.output.member_table import Missing
from tandem.remote.members import members_of, state_of
from tandem.remote.observe import RemotePipeline, look_at
from tandem.remote.pipelines import find_pipeline
from tandem_core.model.change import ChangeStatus
from tandem_core.model.states import (
    ChangeStage,
    MemberKind,
    MemberState,
    PairStanding,
    PairState,
    Role,
)
from tandem_core.model.status import MemberStatus


def look(stage: Stage) -> RemotePipeline:
    return look_at(stage.cluster, stage.shell, stage.world.resource())


def members(stage: Stage) -> dict[str, MemberStatus]:
    return {member.name: member for member in look(stage).status.members}


def test_status_combines_resource_and_pods() -> None:
    stage = Stage()
    seen = look(stage)
    written = stage.world.status()
    assert seen.status.pairs == written.pairs
    assert seen.status.epoch == written.epoch
    assert len(seen.status.members) == 8
    for pair in written.pairs:
        twins = [member for member in seen.status.members if member.pair == pair.name]
        assert {member.role: member.name for member in twins} == {
            Role.PRIMARY: pair.primary,
            Role.SECONDARY: pair.secondary,
        }
        assert {member.node for member in twins} == {"node-0", "node-1"}
        assert {member.state for member in twins} == {MemberState.RUNNING}
    assert all(member.pid is None for member in seen.status.members)


@pytest.mark.parametrize(
    ("stage", "standing"),
    [
        (ChangeStage.BUILDING, PairStanding.SHADOW),
        (ChangeStage.CUTTING, PairStanding.SHADOW),
        (ChangeStage.RETIRING, PairStanding.MUTED),
        (ChangeStage.ABANDONED, PairStanding.GONE),
        (None, PairStanding.GONE),
    ],
)
def test_members_of_pairs_that_the_status_does_not_list_are_marked(
    stage: ChangeStage | None, standing: PairStanding
) -> None:
    began = "2024-05-01T12:00:00Z"
    seen = Stage()
    status = seen.world.status()
    known, other = status.pairs
    change = None if stage is None else ChangeStatus(target=2, stage=stage, since=began)
    shown = replace(status, pairs=(known,), change=change)
    found = {member.pair: member.standing for member in members_of(seen.cast().pods, shown, None)}
    assert found == {None: None, known.name: None, other.name: standing}


def test_lead_report_adds_active_merge_and_epochs() -> None:
    stage = Stage()
    active, standby = stage.uids("merge")
    replicas = stage.uids("replica")
    seats = [{"volume": f"{uid}.0", "committed": 40 + n} for n, uid in enumerate(replicas)]
    stage.let_lead(stage.cast().pods[0])
    stage.let_lead_say(
        delivered=39,
        merges=[{"slot": 0, "volume": f"{active}.0"}],
        pairs=[{"name": "pair-0", "seats": seats[:2]}, {"name": "pair-1", "seats": seats[2:]}],
    )
    seen = look(stage)
    states = {uid_of(stage.cluster.pod(m.name)): m.state for m in seen.status.members}
    assert states[active] is MemberState.RUNNING
    assert states[standby] is MemberState.STANDBY
    names = {uid_of(pod): name_of(pod) for pod in stage.world.pods()}
    assert seen.epochs() == {
        names[active]: 39,
        **{names[uid]: 40 + n for n, uid in enumerate(replicas)},
    }
    assert seen.titles() == {names[active]: "active", seen.cast.pods[0].name: "lead"}


@pytest.mark.parametrize("trouble", [Refused("403"), Unreachable("timed out"), NotFound("404")])
def test_status_is_shown_without_lead_report(trouble: Any) -> None:
    stage = Stage()
    stage.let_lead(stage.cast().pods[0])
    stage.shell.fails = trouble
    seen = look(stage)
    merges = [m for m in seen.status.members if m.kind is MemberKind.MERGE]
    assert {merge.state for merge in merges} == {MemberState.RUNNING}
    assert "active" not in seen.titles().values()
    assert seen.epochs() == {}


def test_former_lead_report_is_ignored() -> None:
    stage = Stage()
    stage.let_lead(stage.cast().pods[0])
    stage.shell.state = {"volume": "v", "incarnation": 1, "part": {"kind": "split"}}
    assert look(stage).word is None


def test_pod_no_longer_ready_is_silent() -> None:
    stage = Stage()
    split, merge = (name_of(stage.of_kind(kind)[0]) for kind in ("split", "merge"))
    replica = name_of(stage.world.replicas("pair-0")["secondary"])
    for name in (split, merge, replica):
        stage.make_ready(name, ready=False)
    seen = members(stage)
    assert {seen[name].state for name in (split, merge, replica)} == {MemberState.SILENT}


def test_pod_not_yet_ready_is_starting() -> None:
    stage = Stage()
    split = name_of(stage.of_kind("split")[0])
    stage.make_ready(split, ready=False, since=BEGAN)
    assert members(stage)[split].state is MemberState.STARTING


@pytest.mark.parametrize(
    ("pair", "ready", "state"),
    [
        (PairState.CATCHING_UP, False, MemberState.CATCHING_UP),
        (PairState.CATCHING_UP, True, MemberState.CATCHING_UP),
        (PairState.STARTING, False, MemberState.STARTING),
        (None, False, MemberState.STARTING),
        (PairState.ALONE, False, MemberState.SILENT),
        (PairState.PAIRED, True, MemberState.RUNNING),
    ],
)
def test_secondary_state_follows_pair_state(
    pair: PairState | None, ready: bool, state: MemberState
) -> None:
    stage = Stage()
    secondary = name_of(stage.world.replicas("pair-0")["secondary"])
    stage.make_ready(secondary, ready=ready, since=LATER)
    pod = next(pod for pod in stage.cast().pods if pod.name == secondary)
    assert state_of(pod, pair, None) is state


def test_primary_of_catching_up_pair_is_running() -> None:
    stage = Stage()
    primary = name_of(stage.world.replicas("pair-0")["primary"])
    pod = next(pod for pod in stage.cast().pods if pod.name == primary)
    assert state_of(pod, PairState.CATCHING_UP, None) is MemberState.RUNNING


def test_ended_container_is_gone() -> None:
    stage = Stage()
    name = name_of(stage.of_kind("split")[0])
    stage.cluster.crash(name, 1)
    assert members(stage)[name].state is MemberState.GONE
    stage.cluster.touch(stage.cluster.pod(name), phase="Failed")
    assert members(stage)[name].state is MemberState.GONE


def test_unscheduled_pod_is_starting() -> None:
    stage = Stage()
    replica_set = stage.cluster.list(REPLICA_SET, KEY.namespace)[0]
    pod = stage.of_kind("replica")[0]
    waiting = {**pod, "metadata": {**pod["metadata"], "name": "new"}, "status": {}}
    waiting["spec"] = {k: v for k, v in pod["spec"].items() if k != "nodeName"}
    waiting["metadata"]["ownerReferences"] = replica_set["metadata"]["ownerReferences"]
    stage.cluster.create(waiting)
    seen = members(stage)["new"]
    assert (seen.state, seen.node) == (MemberState.STARTING, None)


def test_single_pipeline_needs_no_name() -> None:
    stage = Stage()
    assert name_of(find_pipeline(stage.cluster, KEY.namespace, None)) == KEY.name
    stage.cluster.create(resource(Key(KEY.namespace, "second")))
    with pytest.raises(Missing, match="second, spending"):
        find_pipeline(stage.cluster, KEY.namespace, None)
    assert name_of(find_pipeline(stage.cluster, KEY.namespace, "second")) == "second"


def test_unknown_pipeline_error_suggests_nearest_name() -> None:
    stage = Stage()
    with pytest.raises(Missing, match='did you mean "spending"'):
        find_pipeline(stage.cluster, KEY.namespace, "spendings")
    with pytest.raises(Missing, match="namespace elsewhere"):
        find_pipeline(stage.cluster, "elsewhere", "spending")


def test_missing_definition_means_not_installed() -> None:
    class Bare(Cluster):
        def list(self, *_: Any) -> Any:
            raise NotFound("404 page not found")

    with pytest.raises(Missing, match="not installed"):
        find_pipeline(Bare(), "default", "spending")

import pytest
from tests.remote.stage import Stage

from tandem.kube.objects import name_of
from tandem.output.member_table import Missing
from tandem.remote.targets import find_target, short_names
from tandem_core.model.kubernetes_names import ROLE_LABEL


def test_short_names_use_kind_and_order_or_replica_role() -> None:
    stage = Stage()
    pods = stage.cast().pods
    names = short_names(pods)
    assert [names[pod.name] for pod in pods if pod.place.pair is None] == [
        *("split-0", "split-1"),
        *("merge-0", "merge-1"),
    ]
    assert {names[pod.name] for pod in pods if pod.place.pair is not None} == {
        f"{pair}/{role}" for pair in ("pair-0", "pair-1") for role in ("primary", "secondary")
    }
    splits = [name_of(pod) for pod in stage.of_kind("split")]
    assert [names[name] for name in sorted(splits)] == ["split-0", "split-1"]


def test_target_is_short_name_pod_name_or_lead() -> None:
    stage = Stage()
    cast = stage.cast()
    assert cast.lead is None
    stage.let_lead(cast.pods[1])
    cast = stage.cast()
    assert cast.lead == cast.pods[1]
    primary = name_of(stage.world.replicas("pair-1")["primary"])
    assert find_target("pair-1/primary", cast.pods, None).name == primary
    assert find_target(primary, cast.pods, None).name == primary
    assert find_target("split-1", cast.pods, None) == cast.pods[1]
    assert find_target("lead", cast.pods, cast.pods[1].name) == cast.pods[1]


def test_terminating_pod_is_no_target() -> None:
    stage = Stage()
    first, second = (name_of(pod) for pod in stage.of_kind("split"))
    stage.cluster.delete(stage.cluster.pod(first))
    pods = stage.cast().pods
    assert first not in {pod.name for pod in pods}
    assert find_target("split-0", pods, None).name == second


def test_replica_without_role_is_found_by_pod_name() -> None:
    stage = Stage()
    secondary = stage.world.replicas("pair-0")["secondary"]
    changed = stage.cluster.pod(name_of(secondary))
    del changed["metadata"]["labels"][ROLE_LABEL]
    stage.cluster.replace(changed)
    pods = stage.cast().pods
    assert name_of(secondary) not in short_names(pods)
    assert find_target(name_of(secondary), pods, None).name == name_of(secondary)


@pytest.mark.parametrize("target", ["pair-9/primary", "pair-0/third", "split-2", "lead", "", "x"])
def test_unknown_target_error_lists_known_targets(target: str) -> None:
    pods = Stage().cast().pods
    with pytest.raises(Missing) as missing:
        find_target(target, pods, None)
    known = {"split-0", "merge-1", "pair-0/primary", "pair-1/secondary", pods[0].name}
    assert known <= set(str(missing.value).replace(")", "").replace(",", "").split())

"""`tandem plan`: dry runs for pipelines on this machine and on a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.control.world import KEY, resource
from tests.local.pipelines import document
from tests.remote.stage import Stage

from tandem.kube import user
from tandem.kube.kinds import CONFIG_MAP, STREAM_PIPELINE
from tandem.kube.user import UserAccess
from tandem.local.store.directory import Directory, locked
from tandem.local.store.intent_file import read_intent, write_functions, write_intent
from tandem.local.store.manifest import prepare
from tandem.local.store.paths import with_absolute_paths
from tandem.policy.intent import first_functions, first_intent
from tandem_cli import main
from tandem_cli.plan import DRY_RUN
from tandem_core.contract.intent import Function, Generation, Pair
from tandem_core.contract.intent_text import function_key
from tandem_core.model.kubernetes_names import intent_name
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.states import Phase
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of, to_bytes

Output = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    """A stopped pipeline `spending` of two pairs, in `.tandem/`, and no cluster."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    monkeypatch.chdir(tmp_path)
    directory = Directory(tmp_path / ".tandem" / "spending")
    parsed = parse_pipeline(document())
    assert isinstance(parsed, Pipeline)
    pipeline = with_absolute_paths(parsed, tmp_path, tmp_path)
    with locked(directory):
        prepare(directory, pipeline, tmp_path)
    write_functions(directory.intent.parent, first_functions(pipeline))
    write_intent(directory.intent, first_intent(pipeline))
    return directory


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The current kubeconfig names a cluster with the pipeline `spending` of two pairs."""
    stage = Stage()

    def connect(_: str | None = None, namespace: str | None = None) -> UserAccess:
        return stage.access._replace(namespace=namespace or KEY.namespace)

    monkeypatch.setattr(user, "connect_user", connect)
    monkeypatch.chdir(tmp_path)
    return stage


def manifest(content: dict[str, Any]) -> str:
    """Write a manifest to the working directory."""
    Path("changed.yaml").write_text(yaml.safe_dump(content))
    return "changed.yaml"


def local(**spec: Any) -> str:
    return manifest(document(**spec))


def remote(**spec: Any) -> str:
    content = resource(**{"pairs": {"count": 2}, **spec})
    return manifest({name: content[name] for name in ("apiVersion", "kind", "metadata", "spec")})


def planned(capsys: Output, *arguments: str, code: int = 0) -> Any:
    assert main(["plan", *arguments, "-o", "json"]) == code
    return json.loads(capsys.readouterr().out)


def tree(directory: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("home")
def test_text_has_a_line_for_each_step_and_ends_with_the_dry_run(capsys: Output) -> None:
    assert main(["plan", local(pairs={"count": 3})]) == 0
    head, step, total, state, risk, last = capsys.readouterr().out.splitlines()
    assert head == "spending: 2 pairs → 3 pairs in 1 step of at most 2 new pairs"
    assert "pair-0 → pair-2 + pair-3" in step
    assert "4 drivers" in step
    assert step.endswith("carried: pair-1")
    assert "8 drivers at a time (4 now, 6 after)" in total
    assert "not known" in state
    assert risk.endswith("nothing before the cut; room needed: 4 drivers beside 4")
    assert last == DRY_RUN


def test_json_has_steps_totals_and_reasons(home: Directory, capsys: Output) -> None:
    found = planned(capsys, local(pairs={"count": 1}))
    (step,) = found["steps"]
    assert found["pairs"] == {"now": 2, "wanted": 1, "after": 1}
    assert step["replaced"] == ["pair-0", "pair-1"]
    assert step["new"] == [{"name": "pair-2", "parents": ["pair-0", "pair-1"]}]
    assert (step["carried"], step["moved"]) == ([], 1.0)
    assert 0.4 < found["total"]["movedAtLeast"] < 0.5
    assert found["total"]["drivers"] == {"now": 4, "atMost": 6, "after": 2}
    assert found["total"]["room"] == {"built": 2, "beside": 4}
    assert (found["total"]["maxSurge"], found["total"]["movedBytes"]) == (2, None)
    assert found["reasons"]
    assert (found["dryRun"], found["fields"]) == (True, [])
    assert found["where"] == str(home.path.relative_to(Path.cwd()))


def test_nothing_is_written(home: Directory, capsys: Output) -> None:
    before = tree(home.path)
    planned(capsys, local(pairs={"count": 3}))
    assert tree(home.path) == before


@pytest.mark.usefixtures("home")
def test_same_manifest_is_no_change(capsys: Output) -> None:
    assert main(["plan", local()]) == 0
    assert capsys.readouterr().out.splitlines() == ["spending: no change (2 pairs)"]


@pytest.mark.usefixtures("home")
def test_other_changed_fields_are_listed_beside_the_plan(capsys: Output) -> None:
    file = local(pairs={"count": 3, "replicas": 1}, epoch={"interval": "2s"})
    found = planned(capsys, file, code=1)
    assert [(each["path"], each["after"]) for each in found["fields"]] == [
        ("spec.epoch.interval", "2s"),
        ("spec.pairs.replicas", 1),
    ]
    assert not any(each["canChange"] for each in found["fields"])
    assert found["steps"][0]["driversBuilt"] == 4
    assert main(["plan", file]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("spec.pairs.replicas: was 2, is 1") and "cannot change" in line
        for line in lines
    )
    assert lines[-1] == DRY_RUN


@pytest.mark.usefixtures("home")
def test_splits_and_merges_can_change_at_any_time(capsys: Output) -> None:
    found = planned(capsys, local(splits={"count": 3}, merges={"count": 2}))
    assert found["steps"] == []
    assert {each["path"]: each["canChange"] for each in found["fields"]} == {
        "spec.splits.count": True,
        "spec.merges.count": True,
    }


@pytest.mark.usefixtures("home")
def test_long_plan_is_shortened_in_text_only(capsys: Output) -> None:
    file = local(pairs={"count": 40})
    assert len(planned(capsys, file)["steps"]) == 38
    assert main(["plan", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 18
    assert "26 more steps" in lines[-5]


@pytest.mark.parametrize("running", [True, False])
def test_running_or_named_directory_is_planned(
    home: Directory, running: bool, capsys: Output
) -> None:
    file = local(pairs={"count": 3})
    if running:
        with locked(home):
            assert len(planned(capsys, file)["steps"]) == 1
    assert len(planned(capsys, file, "--dir", str(home.path))["steps"]) == 1


def test_directory_without_intent_has_the_first_generation(home: Directory, capsys: Output) -> None:
    file = local(pairs={"count": 3})
    before = planned(capsys, file)
    home.intent.unlink()
    assert planned(capsys, file) == before


def test_plan_starts_at_the_target_generation(home: Directory, capsys: Output) -> None:
    names = ("pair-1", "pair-2", "pair-3")
    function = RoutingFunction.plain(names)
    digest = digest_of(function)
    write_functions(home.intent.parent, (Function(digest, to_bytes(function)),))
    parents = {"pair-2": ("pair-0",), "pair-3": ("pair-0",)}
    pairs = tuple(Pair(name, name, parents.get(name, ())) for name in names)
    parsed = parse_pipeline(document())
    assert isinstance(parsed, Pipeline)
    intent = first_intent(parsed)
    second = Generation(2, digest, pairs)
    made = intent.replace(next_pair=4, next_generation=3, target=2)
    write_intent(home.intent, made.replace(generations=(*intent.generations, second)))
    found = planned(capsys, local(pairs={"count": 4}))
    assert found["pairs"]["now"] == 3
    assert [new["name"] for new in found["steps"][0]["new"]] == ["pair-4", "pair-5"]


def test_plan_has_the_surge_of_the_manifest_and_free_names(home: Directory, capsys: Output) -> None:
    stored = read_intent(home.intent)
    assert stored is not None
    write_intent(home.intent, stored.replace(next_pair=9))
    found = planned(capsys, local(pairs={"count": 4}, change={"maxSurge": 4}))
    (step,) = found["steps"]
    assert [new["name"] for new in step["new"]] == ["pair-9", "pair-10", "pair-11", "pair-12"]
    assert found["total"]["room"] == {"built": 8, "beside": 4}


def test_unreadable_directory_exits_with_2(home: Directory, capsys: Output) -> None:
    file = local(pairs={"count": 3})
    for path in (
        next(home.path.glob(function_key("*"))),
        home.intent,
        home.pipeline,
    ):
        path.write_text("{")
        assert main(["plan", file, "--dir", str(home.path)]) == 2
        assert str(path) in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_missing_file_or_pipeline_exits_with_2(capsys: Output) -> None:
    assert main(["plan", "missing.yaml"]) == 2
    assert "tandem plan" in capsys.readouterr().err
    other = document()
    other["metadata"]["name"] = "other"
    assert main(["plan", manifest(other)]) == 2
    assert "no pipeline in .tandem/other" in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_invalid_manifest_exits_with_1(capsys: Output) -> None:
    assert main(["plan", local(pairs={"count": 0})]) == 1
    assert "spec.pairs.count" in capsys.readouterr().err
    file = manifest(document())
    Path(file).write_text(f"{Path(file).read_text()}---\n{Path(file).read_text()}")
    assert main(["plan", file]) == 1


def test_pipeline_on_a_cluster_is_planned(stage: Stage, capsys: Output) -> None:
    found = planned(capsys, remote(pairs={"count": 3}))
    assert found["where"] == "shop/spending on test"
    assert found["steps"][0]["carried"] == ["pair-1"]
    assert found["fields"] == []
    assert planned(capsys, remote())["steps"] == []
    intent = stage.cluster.get(CONFIG_MAP, KEY.namespace, intent_name(KEY.name))
    stage.cluster.replace({**intent, "binaryData": {}})
    assert main(["plan", remote(pairs={"count": 3})]) == 2
    assert "routing function" in capsys.readouterr().err
    stage.cluster.remove(stage.cluster.get(CONFIG_MAP, KEY.namespace, intent_name(KEY.name)))
    assert main(["plan", remote(pairs={"count": 3})]) == 2
    assert intent_name(KEY.name) in capsys.readouterr().err


@pytest.mark.usefixtures("stage")
def test_free_fields_of_a_cluster_can_change(capsys: Output) -> None:
    found = planned(capsys, remote(suspend=True))
    assert [(each["path"], each["canChange"]) for each in found["fields"]] == [
        ("spec.suspend", True)
    ]
    found = planned(capsys, remote(suspend=True, spark={"cores": 2}), code=1)
    assert {each["path"]: each["canChange"] for each in found["fields"]} == {
        "spec.suspend": True,
        "spec.spark.cores": False,
    }


def test_refused_pipeline_on_a_cluster_may_change_in_all_fields(
    stage: Stage, capsys: Output
) -> None:
    there = stage.cluster.get(STREAM_PIPELINE, KEY.namespace, KEY.name)
    stage.cluster.write_status(there, {**there["status"], "phase": str(Phase.REFUSED)})
    found = planned(capsys, remote(spark={"cores": 2}))
    assert [each["canChange"] for each in found["fields"]] == [True]


@pytest.mark.usefixtures("stage")
def test_manifest_of_another_namespace_is_not_compared(capsys: Output) -> None:
    content = resource(pairs={"count": 3})
    content["metadata"] = {"name": "spending", "namespace": "elsewhere"}
    assert main(["plan", manifest(content)]) == 2
    assert "--namespace elsewhere" in capsys.readouterr().err

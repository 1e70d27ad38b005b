from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_core.model.fields.declarations import Document, settings_of
from tandem_core.model.fields.problems import Fault, path_text
from tandem_core.model.fields.quantities import ByteSize, Duration
from tandem_core.model.fields.spec_kinds import SqlQuery
from tandem_core.model.pipeline import (
    Pipeline,
    Refusal,
    fixed_part,
    parse_pipeline,
    parse_status,
    pipeline_document,
    sparse_document,
    status_document,
)
from tandem_core.model.rule_helpers import normal_path
from tandem_core.model.spec import ConsoleSink, FilesSource, OnError, OutputMode, Spec
from tandem_core.model.states import (
    ConditionStatus,
    ConditionType,
    MemberKind,
    MemberState,
    PairState,
    Phase,
    SinkClass,
)
from tandem_core.model.status import (
    Condition,
    MemberStatus,
    PairStatus,
    SinkStatus,
    Status,
    ready_text,
)


def parsed(data: object) -> Pipeline:
    found = parse_pipeline(data)
    assert isinstance(found, Pipeline), found
    return found


def problems(data: object) -> set[tuple[str, Fault]]:
    found = parse_pipeline(data)
    assert isinstance(found, Refusal)
    return {(path_text(problem.path), problem.fault) for problem in found.problems}


def test_omitted_fields_have_documented_defaults(payments: dict[str, Any]) -> None:
    spec = parsed(payments).spec
    assert spec.epoch.interval == Duration(500)
    assert spec.epoch.max_bytes == ByteSize(32_000_000)
    assert (spec.splits.count, spec.pairs.count, spec.merges.count) == (2, 2, 1)
    assert spec.splits.buffer == ByteSize(256 * 2**20)
    assert (spec.pairs.replicas, spec.pairs.spares) == (2, 0)
    assert (spec.spark.cores, spec.spark.memory, spec.spark.conf) == (1, ByteSize(2**30), ())
    assert spec.query.output_mode is OutputMode.APPEND
    assert not spec.suspend
    (stream,) = spec.streams
    assert stream.on_error is OnError.DEAD_LETTER
    assert stream.watermark is None


def test_alternatives_are_parsed_into_types(payments: dict[str, Any]) -> None:
    spec = parsed(payments).spec
    source = spec.streams[0].source
    assert isinstance(source, FilesSource)
    assert (source.path, source.bounded, source.partitions) == ("data", False, 1)
    assert isinstance(spec.query.program, SqlQuery)
    assert isinstance(spec.sinks[0].target, ConsoleSink)


def test_pipeline_round_trips(payments: dict[str, Any]) -> None:
    payments["spec"]["spark"] = {"conf": {"spark.x": "3", "spark.ui.enabled": "false"}}
    payments["spec"]["streams"][0]["watermark"] = {"column": "at", "delay": "1m30s"}
    pipeline = parsed(payments)
    assert pipeline.spec.spark.conf == (("spark.ui.enabled", "false"), ("spark.x", "3"))
    assert parsed(pipeline_document(pipeline)) == pipeline


def test_kubernetes_metadata_is_accepted(payments: dict[str, Any]) -> None:
    payments["metadata"] |= {"uid": "u-1", "generation": 3, "labels": {"a": "b"}, "finalizers": []}
    payments["status"] = {"anything": True}
    metadata = parsed(payments).metadata
    assert (metadata.uid, metadata.generation, metadata.namespace) == ("u-1", 3, "default")


def test_null_counts_as_missing(payments: dict[str, Any]) -> None:
    payments["spec"]["epoch"] = None
    payments["spec"]["streams"][0]["key"] = None
    assert problems(payments) == {("spec.streams[0].key", Fault.MISSING)}


def test_rules_apply_to_readable_fields(payments: dict[str, Any]) -> None:
    stream = payments["spec"]["streams"][0]
    second = deepcopy(stream) | {"key": ["amount"], "source": 3}
    payments["spec"]["streams"].append(second)
    stream |= {"source": {"http": "yes"}, "key": ["usr"], "watermark": {"column": "user"}}
    assert problems(payments) == {
        ("spec.streams[0].source.http", Fault.WRONG_TYPE),
        ("spec.streams[0].key[0]", Fault.NO_SUCH_COLUMN),
        ("spec.streams[0].watermark.delay", Fault.MISSING),
        ("spec.streams[0].watermark.column", Fault.UNFIT_TYPE),
        ("spec.streams[1].source", Fault.WRONG_TYPE),
        ("spec.streams[1].name", Fault.DUPLICATE),
    }


def test_keys_correspond_by_position_not_by_name(payments: dict[str, Any]) -> None:
    payments["spec"]["streams"].append(
        {
            "name": "refunds",
            "schema": "who STRING, why STRING",
            "key": ["who"],
            "source": {"http": {}},
        }
    )
    payments["spec"]["query"]["sql"] += " UNION ALL SELECT who, 1 FROM refunds"
    assert len(parsed(payments).spec.streams) == 2


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def paths_into(data: object) -> list[tuple[Any, ...]]:
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    else:
        return [()]
    return [(), *((step, *rest) for step, inner in items for rest in paths_into(inner))]


@given(data=json_like)
def test_parsing_any_data_never_raises(data: object) -> None:
    assert isinstance(parse_pipeline(data), Refusal)
    parse_status(data)


@given(draw=st.data())
def test_parsing_a_manifest_with_one_value_replaced_never_raises(draw: st.DataObject) -> None:
    data = FULL
    path = draw.draw(st.sampled_from(paths_into(data)[1:]))
    data = deepcopy(data)
    inner: Any = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = draw.draw(json_like)
    found = parse_pipeline(data)
    if isinstance(found, Pipeline):
        assert parse_pipeline(pipeline_document(found)) == found


FULL: dict[str, Any] = {
    "apiVersion": "tandem.dev/v1alpha1",
    "kind": "StreamPipeline",
    "metadata": {"name": "full", "namespace": "streams"},
    "spec": {
        "epoch": {"interval": "1s", "maxBytes": "1Mi"},
        "streams": [
            {
                "name": "a",
                "schema": "k STRING, at TIMESTAMP",
                "key": ["k"],
                "watermark": {"column": "at", "delay": "1s", "idleTimeout": "5s"},
                "source": {"generator": {"rowsPerSecond": 1, "keys": 2, "skew": 0.5, "rows": 9}},
                "onError": "fail",
            },
            {
                "name": "b",
                "schema": "k STRING",
                "key": ["k"],
                "source": {"kafka": {"bootstrapServers": "k:9092", "topic": "b"}},
            },
        ],
        "query": {"python": {"file": "query.py", "function": "build"}, "outputMode": "update"},
        "splits": {
            "count": 3,
            "buffer": "1Gi",
            "template": {"nodeSelector": {"disk": "fast"}},
        },
        "pairs": {
            "count": 3,
            "replicas": 1,
            "spares": 1,
            "template": {
                "labels": {"team": "payments"},
                "annotations": {"note": "two\nlines"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {}},
                "env": [{"name": "REGION", "value": "north"}],
                "envFrom": [{"secretRef": {"name": "keys"}}],
                "volumes": [{"name": "queries", "configMap": {"name": "queries"}}],
                "volumeMounts": [{"name": "queries", "mountPath": "/queries"}],
                "resources": {"requests": {"cpu": 2}, "limits": {"cpu": "2500m"}},
                "priorityClassName": "high",
                "imagePullSecrets": [{"name": "registry"}],
                "runtimeClassName": "gvisor",
            },
        },
        "merges": {"count": 1, "template": {}},
        "sinks": [
            {"name": "files", "files": {"path": "out", "format": "json"}},
            {"name": "topic", "kafka": {"bootstrapServers": "k:9092", "topic": "out"}},
            {"name": "post", "http": {"url": "https://example.org/in"}},
        ],
        "spark": {"cores": 2, "memory": "2g", "conf": {"spark.ui.enabled": "false"}},
        "suspend": True,
    },
}


def test_full_manifest_round_trips() -> None:
    assert parsed(pipeline_document(parsed(FULL))) == parsed(FULL)


def test_templates_are_kept_as_given() -> None:
    template = parsed(FULL).spec.pairs.template
    assert template is not None
    assert template.volumes[0].data == {"name": "queries", "configMap": {"name": "queries"}}
    assert template.resources is not None
    assert template.resources.requests == (("cpu", "2"),)
    written: Any = pipeline_document(parsed(FULL))["spec"]
    given = FULL["spec"]["pairs"]["template"] | {"nodeSelector": {}}
    given["resources"]["requests"]["cpu"] = "2"
    assert written["pairs"]["template"] == given


@pytest.mark.parametrize(
    "affinity", [{"a": float("nan")}, {"a": object()}, {1: "a"}, {"a": [[0] * 500]}]
)
def test_template_accepts_plain_data_only(payments: dict[str, Any], affinity: object) -> None:
    payments["spec"]["splits"] = {"template": {"affinity": affinity}}
    assert problems(payments) == {("spec.splits.template.affinity", Fault.BAD_FORMAT)}


def test_sparse_document_omits_defaults(payments: dict[str, Any]) -> None:
    assert sparse_document(parsed(payments)) == payments
    payments["spec"]["pairs"] = {"count": 2, "spares": 1}
    sparse: Any = sparse_document(parsed(payments))["spec"]
    assert sparse["pairs"] == {"spares": 1}
    assert parsed(sparse_document(parsed(FULL))) == parsed(FULL)


def test_fixed_part_omits_mutable_fields() -> None:
    changed = deepcopy(FULL)
    changed["metadata"] |= {"uid": "u-1", "generation": 7}
    changed["spec"]["suspend"] = False
    changed["spec"]["change"] = {"maxSurge": 4}
    for role in ("splits", "pairs", "merges"):
        del changed["spec"][role]["template"]
        changed["spec"][role]["count"] = 4
    assert fixed_part(parsed(changed)) == fixed_part(parsed(FULL))
    for role, field, value in (("pairs", "replicas", 2), ("splits", "buffer", "2Gi")):
        other = deepcopy(changed)
        other["spec"][role][field] = value
        assert fixed_part(parsed(other)) != fixed_part(parsed(FULL))


@pytest.mark.parametrize("where", ["schema", "name", "key", "source", "watermark"])
def test_unreadable_field_does_not_hide_other_problems(
    payments: dict[str, Any], where: str
) -> None:
    payments["spec"]["streams"][0][where] = 7
    payments["spec"]["sinks"][0]["name"] = "Not A Label"
    assert problems(payments) == {
        (f"spec.streams[0].{where}", Fault.WRONG_TYPE),
        ("spec.sinks[0].name", Fault.BAD_FORMAT),
    }


@pytest.mark.parametrize(
    ("path", "normal"),
    [("a/b", "a/b"), ("./a//b/", "a/b"), ("/a/../b", "/b"), ("../a", "../a"), ("a/..", "")],
)
def test_equal_paths_are_normalised(path: str, normal: str) -> None:
    assert normal_path(path) == normal


def test_status_round_trips() -> None:
    status = Status(
        observed_generation=4,
        phase=Phase.RUNNING,
        conditions=(
            Condition(
                type=ConditionType.PAIRED,
                status=ConditionStatus.FALSE,
                reason="ReplicaGone",
                last_transition_time="2026-01-01T00:00:00Z",
            ),
        ),
        pairs=(PairStatus(name="pair-0", state=PairState.ALONE, primary="pair-0-a", epoch=41),),
        sinks=(SinkStatus(name="totals", delivery=SinkClass.TRANSACTIONAL, position=40),),
        members=(
            MemberStatus(name="split-0", kind=MemberKind.SPLIT, pid=12, state=MemberState.RUNNING),
        ),
    )
    written = status_document(status)
    assert written["sinks"] == [{"name": "totals", "class": "Transactional", "position": 40}]
    assert written["observedGeneration"] == 4
    assert parse_status(written) == status


def test_ready_text_counts_paired_of_expected() -> None:
    pairs = [
        PairStatus(name=f"pair-{number}", state=PairState.PAIRED, ready=ready)
        for number, ready in enumerate([True, True, False])
    ]
    assert ready_text(pairs) == "2/3"
    assert ready_text(()) == Status().pairs_ready


def test_phases_have_descriptions() -> None:
    assert Phase("Running").meaning


def test_terminal_phases_need_their_user_or_are_done() -> None:
    terminal = {phase for phase in Phase if phase.is_terminal}
    assert terminal == {Phase.REFUSED, Phase.HALTED, Phase.COMPLETED}


def test_every_field_is_documented() -> None:
    seen: set[type[Any]] = set()

    def visit(cls: type[Any]) -> None:
        seen.add(cls)
        for declared in settings_of(cls):
            assert declared.doc.endswith("."), declared
            if isinstance(declared.kind, Document):
                visit(declared.kind.cls)

    visit(Pipeline)
    visit(Status)
    assert Spec in seen

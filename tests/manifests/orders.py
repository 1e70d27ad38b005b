"""Orders for tests: the four of the golden files, and whatever Hypothesis thinks of."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tandem.manifests.desired_state import DesiredState, Images, PairWorkload, Workloads
from tandem_core.model.pipeline import Pipeline, parse_pipeline

IMAGES = Images(
    split="registry.example/tandem-slim:1",
    replica="registry.example/tandem-driver:1",
    merge="registry.example/tandem-slim:1",
)
UID = "0b7c2a6e-9d7f-4c1a-8f43-5a2f1b1f3c11"


def manifest(name: str = "spending", **spec: Any) -> dict[str, Any]:
    """A right manifest as plain data."""
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": name, "namespace": "streams", "uid": UID, "generation": 1},
        "spec": {
            "streams": [
                {
                    "name": "payments",
                    "schema": "user STRING, amount BIGINT",
                    "key": ["user"],
                    "source": {"generator": {"rowsPerSecond": 100, "keys": 10}},
                }
            ],
            "query": {"sql": "SELECT user, count(*) AS n FROM payments GROUP BY user"},
            "sinks": [{"name": "totals", "console": {}}],
            **spec,
        },
    }


def order(data: dict[str, Any], generation: int = 1) -> DesiredState:
    """The order of a manifest, with the pairs that it asks for."""
    pipeline = parse_pipeline(data)
    assert isinstance(pipeline, Pipeline), pipeline
    return DesiredState(
        pipeline=pipeline,
        uid=UID,
        images=IMAGES,
        workloads=Workloads(
            pairs=tuple(
                PairWorkload(f"pair-{number}", generation)
                for number in range(pipeline.spec.pairs.count)
            ),
            splits=pipeline.spec.splits.count,
            slots=tuple(range(pipeline.spec.merges.count)),
        ),
        operator_namespace="tandem-system",
    )


_SHARED = {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}

EVERYTHING = manifest(
    name="orders",
    epoch={"interval": "1s"},
    splits={
        "count": 3,
        "buffer": "512Mi",
        "template": {
            "volumes": [_SHARED],
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
            "resources": {"limits": {"memory": "512Mi", "cpu": "1"}},
        },
    },
    pairs={
        "count": 2,
        "spares": 1,
        "template": {
            "labels": {"team": "orders"},
            "annotations": {"example.org/note": "drivers"},
            "nodeSelector": {"disk": "fast"},
            "tolerations": [
                {"key": "spot", "operator": "Exists"},
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 60,
                },
            ],
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [{"key": "zone", "operator": "Exists"}]
                            },
                        }
                    ]
                }
            },
            "env": [{"name": "REGION", "value": "north"}],
            "envFrom": [{"secretRef": {"name": "keys"}}],
            "resources": {"requests": {"cpu": "500m"}},
            "priorityClassName": "streaming",
            "imagePullSecrets": [{"name": "registry"}],
            "runtimeClassName": "gvisor",
        },
    },
    merges={
        "count": 2,
        "template": {
            "volumes": [_SHARED],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "resources": {"requests": {"memory": "300Mi"}},
        },
    },
    spark={"cores": 2, "memory": "1500m", "conf": {"spark.ui.enabled": "false"}},
    suspend=True,
)

ORDERS = {
    "small": order(manifest(pairs={"count": 1})),
    "spares-and-templates": order(EVERYTHING, generation=3),
    "refused": replace(order(manifest(name="wrong", pairs={"count": 1})), refused=True),
    "one-replica": order(manifest(name="cheap", pairs={"count": 1, "replicas": 1})),
}

_NAMES = st.from_regex(r"\A[a-z]([-a-z0-9]{0,38}[a-z0-9])?\Z")


@st.composite
def orders(draw: st.DrawFn) -> DesiredState:
    """Any order that the model lets through, with the templates of `EVERYTHING` or without."""
    drawn = manifest(
        name=draw(_NAMES),
        splits={"count": draw(st.integers(1, 256))},
        pairs={
            "count": draw(st.integers(1, 3)),
            "replicas": draw(st.integers(1, 2)),
            "spares": draw(st.integers(0, 2)),
        },
        merges={"count": draw(st.integers(1, 3))},
        spark={"memory": f"{draw(st.integers(768 * 2**20, 2**40))}"},
    )
    for role in ("splits", "pairs", "merges"):
        if draw(st.booleans()):
            drawn["spec"][role]["template"] = EVERYTHING["spec"][role]["template"]
    return order(drawn, generation=draw(st.integers(1, 99_999)))

"""The resource of a pipeline, as a user applies it."""

from typing import Any

from tandem.kube.kinds import STREAM_PIPELINE, Object


def resource(namespace: str, name: str, **spec: Any) -> Object:
    """A small pipeline; `spec` has what is to be otherwise."""
    return {
        "apiVersion": STREAM_PIPELINE.api_version,
        "kind": STREAM_PIPELINE.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "streams": [
                {
                    "name": "payments",
                    "schema": "user STRING, amount BIGINT",
                    "key": ["user"],
                    "source": {"generator": {"rowsPerSecond": 10, "keys": 10}},
                }
            ],
            "query": {"sql": "SELECT user, count(*) AS n FROM payments GROUP BY user"},
            "sinks": [{"name": "out", "console": {}}],
            **spec,
        },
    }

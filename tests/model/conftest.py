from typing import Any

import pytest


@pytest.fixture
def payments() -> dict[str, Any]:
    """A right manifest as plain data, with as little as possible in it, for tests to change."""
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "spending"},
        "spec": {
            "streams": [
                {
                    "name": "payments",
                    "schema": "user STRING, amount BIGINT, at TIMESTAMP",
                    "key": ["user"],
                    "source": {"files": {"path": "data", "format": "json"}},
                }
            ],
            "query": {"sql": "SELECT user, count(*) AS n FROM payments GROUP BY user"},
            "sinks": [{"name": "totals", "console": {}}],
        },
    }

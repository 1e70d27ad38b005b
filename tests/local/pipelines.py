"""Pipelines for tests that start nothing."""

from typing import Any

import yaml

from tandem_core.model.pipeline import Pipeline, parse_pipeline

DOCUMENT = """\
apiVersion: tandem.dev/v1alpha1
kind: StreamPipeline
metadata: {name: spending}
spec:
  streams:
  - name: payments
    schema: user STRING, amount BIGINT, at TIMESTAMP
    key: [user]
    watermark: {column: at, delay: 10s, idleTimeout: 30s}
    source: {files: {path: data/payments, format: json, bounded: true, partitions: 2}}
  query: {sql: SELECT user FROM payments}
  pairs: {count: 2}
  sinks:
  - {name: totals, files: {path: out/totals, format: json}}
"""


def document(**spec: Any) -> dict[str, Any]:
    """The manifest with other fields in its spec."""
    parsed: dict[str, Any] = yaml.safe_load(DOCUMENT)
    parsed["spec"].update(spec)
    return parsed


def pipeline(**spec: Any) -> Pipeline:
    """The pipeline with other fields in its spec."""
    parsed = parse_pipeline(document(**spec))
    assert isinstance(parsed, Pipeline)
    return parsed

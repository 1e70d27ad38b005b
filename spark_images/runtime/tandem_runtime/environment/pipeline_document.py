"""Reads the document that holds a pipeline's manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tandem_core.model.pipeline import Pipeline, Refusal, parse_pipeline


class PipelineUnreadable(Exception):
    """The document is not a pipeline that this version can read."""


class PipelineDocument(NamedTuple):
    """A pipeline, and the other fields of the file."""

    pipeline: Pipeline
    beside: dict[str, Any]


def read_document(path: Path) -> PipelineDocument:
    """Read the file that a pipeline was started with.

    Raises:
        PipelineUnreadable: it is not a pipeline of this version.
    """
    document: Any = json.loads(path.read_text())
    parsed = parse_pipeline(document.pop("manifest"))
    if isinstance(parsed, Refusal):
        raise PipelineUnreadable(f"{path}: {parsed.problems[0]}")
    return PipelineDocument(parsed, document)

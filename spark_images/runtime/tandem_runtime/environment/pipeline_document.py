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


def name_in(path: Path) -> str | None:
    """Read the pipeline's name for logs; None if the file is missing or has none.

    A document that this version cannot read has a name too: the log says whose it is.
    """
    try:
        return str(json.loads(path.read_text())["manifest"]["metadata"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


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

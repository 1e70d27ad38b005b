"""Sinks and answers for tests of sinks."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tandem_core.model.spec import ResultFormat
from tandem_runtime.sinks.files import DirectorySink

UID = "7d1f4d3e"


def opened(
    directory: Path, result_format: str = "json", uid: str = UID, *, slot: int = 0, first: int = 1
) -> DirectorySink:
    return DirectorySink(directory, uid, ResultFormat(result_format), slot=slot, first=first)


def table(*values: int) -> Any:
    return pa.table({"n": pa.array(values, pa.int64())})


def results(directory: Path) -> dict[str, list[Any]]:
    """The visible files of a directory of JSON, with their rows."""
    return {
        path.name: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in sorted(directory.iterdir())
        if not path.name.startswith(("_", "."))
    }


def beside(directory: Path) -> list[str]:
    """The names in the directory beside the results, but for the pipeline's id."""
    return sorted(path.name for path in (directory / "_tandem").iterdir() if path.name != "uid")

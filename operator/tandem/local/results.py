"""The sinks of a pipeline, looked at while nobody delivers to them."""

import contextlib
from pathlib import Path

from tandem.local.directory import Directory
from tandem.model.pipeline import Pipeline
from tandem.model.spec import FilesSink
from tandem.policy.snapshot import Complaint


def foreign_sinks(pipeline: Pipeline, uid: str) -> list[Complaint]:
    """Sinks that belong to another pipeline. Nothing is made: the directory may not be kept."""
    targets = [sink.target for sink in pipeline.spec.sinks]
    paths = [Path(target.path) for target in targets if isinstance(target, FilesSink)]
    return [
        Complaint(
            "ForeignSink",
            f"{path} holds results of another pipeline, or of an earlier directory of this one",
            "name another directory in the manifest, or remove this one to begin anew",
        )
        for path in paths
        if _owner(path) not in {None, uid}
    ]


def _owner(path: Path) -> str | None:
    try:
        return (path / "_tandem" / "uid").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def rows_delivered(pipeline: Pipeline, directory: Directory) -> int:
    """Rows in all sinks together; one that cannot be asked counts nothing."""
    # Here and not above: it loads Arrow, which only the end of a run needs.
    from tandem_runtime.sinks.opening import open_sink  # noqa: PLC0415
    from tandem_runtime.sinks.sink import SinkError  # noqa: PLC0415

    rows = 0
    for spec in pipeline.spec.sinks:
        with contextlib.suppress(SinkError):
            sink = open_sink(spec, directory.uid(), directory.path)
            sink.position()
            rows += sink.rows_out
    return rows

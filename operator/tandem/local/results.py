"""The sinks of a pipeline, looked at while nobody delivers to them."""

from pathlib import Path

from tandem.policy.snapshot import Complaint
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import FilesSink


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

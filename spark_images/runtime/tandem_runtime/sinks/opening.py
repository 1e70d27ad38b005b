"""The way into sinks."""

from pathlib import Path

from tandem.model.spec import ConsoleSink, HttpSink, KafkaSink, ResultFormat
from tandem.model.spec import FilesSink as FilesTarget
from tandem.model.spec import Sink as SinkSpec
from tandem_runtime.sinks.files import FilesSink
from tandem_runtime.sinks.sink import Sink, SinkUnsupported

MOST_UNSHOWN = 1000
"""Epochs that lie in the directory of a console until somebody shows them; the next one waits."""


def open_sink(sink: SinkSpec, uid: str, directory: Path) -> Sink:
    """Open a sink for the pipeline with this id.

    Results for the console are JSON files in `console/<name>` of the pipeline's directory, for
    whoever shows them; there are never more than `MOST_UNSHOWN` of them [12].

    Raises:
        ForeignSink: it belongs to another pipeline.
        SinkFailed: it cannot be reached now.
        SinkUnsupported: this kind of sink cannot be delivered to yet.
    """
    match sink.target:
        case FilesTarget(path=path, format=result_format):
            return FilesSink(Path(path), uid, result_format)
        case ConsoleSink():
            shown = directory / "console" / sink.name
            return FilesSink(shown, uid, ResultFormat.JSON, MOST_UNSHOWN)
        case HttpSink() | KafkaSink():
            kind = "http" if isinstance(sink.target, HttpSink) else "kafka"
            raise SinkUnsupported(
                f"sink {sink.name} is of kind {kind}, which cannot be delivered to yet; "
                "use files or console"
            )

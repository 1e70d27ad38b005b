"""The way into sinks."""

from pathlib import Path

from tandem.model.spec import ConsoleSink, HttpSink, KafkaSink, ResultFormat
from tandem.model.spec import FilesSink as FilesTarget
from tandem.model.spec import Sink as SinkSpec
from tandem_runtime.sinks.files import FilesSink
from tandem_runtime.sinks.sink import Sink, SinkUnsupported


def open_sink(sink: SinkSpec, uid: str, directory: Path) -> Sink:
    """Open a sink for the pipeline with this id.

    Results for the console are JSON files in `console/<name>` of the pipeline's directory, for
    whoever shows them.

    Raises:
        ForeignSink: it belongs to another pipeline.
        SinkFailed: it cannot be reached now.
        SinkUnsupported: this kind of sink cannot be delivered to yet.
    """
    match sink.target:
        case FilesTarget(path=path, format=result_format):
            return FilesSink(Path(path), uid, result_format)
        case ConsoleSink():
            return FilesSink(directory / "console" / sink.name, uid, ResultFormat.JSON)
        case HttpSink() | KafkaSink():
            kind = "http" if isinstance(sink.target, HttpSink) else "kafka"
            raise SinkUnsupported(
                f"sink {sink.name} is of kind {kind}, which cannot be delivered to yet; "
                "use files or console"
            )

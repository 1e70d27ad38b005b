"""Opens sinks."""

from pathlib import Path

from tandem_core.model.spec import (
    ConsoleSink,
    FilesSink,
    HttpSink,
    KafkaSink,
    ResultFormat,
    SinkSpec,
)
from tandem_runtime.sinks.base import Sink, SinkUnsupported
from tandem_runtime.sinks.files import DirectorySink

MOST_UNSHOWN = 1000
"""Maximum of epochs in a console's directory that are not shown yet; the next one waits."""


def count_rows(sink: SinkSpec, uid: str, directory: Path) -> int:
    """Return the rows that all slots have delivered, once all merges have ended."""
    found = open_sink(sink, uid, directory)
    found.position()
    return found.rows_of_all_slots() if isinstance(found, DirectorySink) else found.rows_out


def furthest_epoch(sink: SinkSpec, uid: str, directory: Path) -> int:
    """Return the last epoch that a sink has of any slot; see `open_sink`.

    Opens slot 0, which always exists, and so creates no slot.
    """
    found = open_sink(sink, uid, directory)
    return found.furthest() if isinstance(found, DirectorySink) else found.position()


def open_sink(sink: SinkSpec, uid: str, directory: Path, slot: int = 0, first: int = 1) -> Sink:
    """Open a sink for the pipeline with this id, for a slot that begins with epoch `first`.

    Results for the console are JSON files in `console/<name>` of the pipeline's directory,
    until they are shown; there are never more than `MOST_UNSHOWN` of them [12].

    Raises:
        ForeignSink: it belongs to another pipeline.
        SinkFailed: it cannot be reached now.
        SinkUnsupported: this kind of sink cannot be delivered to yet.
    """
    match sink.target:
        case FilesSink(path=path, format=result_format):
            return DirectorySink(Path(path), uid, result_format, slot=slot, first=first)
        case ConsoleSink():
            shown = directory / "console" / sink.name
            return DirectorySink(
                shown, uid, ResultFormat.JSON, MOST_UNSHOWN, slot=slot, first=first
            )
        case HttpSink() | KafkaSink():
            kind = "http" if isinstance(sink.target, HttpSink) else "kafka"
            raise SinkUnsupported(
                f"sink {sink.name} is of kind {kind}, which is not supported yet; "
                "use files or console"
            )

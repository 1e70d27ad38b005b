"""The way into sources: which partitions a stream has, and how one is opened."""

from tandem.model.spec import FilesSource, GeneratorSource, HttpSource, KafkaSource, Stream
from tandem_runtime.sources.files import FilesPartition
from tandem_runtime.sources.generator import GeneratorPartition
from tandem_runtime.sources.pace import Clock, MonotonicClock
from tandem_runtime.sources.source import SourcePartition, SourceUnsupported


def partitions_of(stream: Stream) -> tuple[str, ...]:
    """The names of a stream's source partitions, such as `payments/0`.

    Raises:
        SourceUnsupported: this kind of source cannot be read yet.
    """
    match stream.source:
        case FilesSource(partitions=count):
            return tuple(f"{stream.name}/{index}" for index in range(count))
        case GeneratorSource():
            return (f"{stream.name}/0",)
        case HttpSource() | KafkaSource():
            raise _not_yet(stream)


def open_partition(stream: Stream, partition: str, clock: Clock | None = None) -> SourcePartition:
    """Open a source partition by its name; paths are taken relative to the working directory.

    Raises:
        SourceUnsupported: this kind of source cannot be read yet, or not with this schema.
    """
    clock = clock or MonotonicClock()
    match stream.source:
        case FilesSource() as source:
            return FilesPartition(stream, source, int(partition.rpartition("/")[2]), clock)
        case GeneratorSource() as source:
            return GeneratorPartition(stream, source, clock)
        case HttpSource() | KafkaSource():
            raise _not_yet(stream)


def _not_yet(stream: Stream) -> SourceUnsupported:
    kind = "http" if isinstance(stream.source, HttpSource) else "kafka"
    return SourceUnsupported(
        f"stream {stream.name} has a source of kind {kind}, which cannot be read yet; "
        "use files or generator"
    )

"""The source partitions of a stream, computed without loading any source."""

from tandem_core.model.spec import FilesSource, GeneratorSource, HttpSource, KafkaSource, Stream


class SourceUnsupported(Exception):
    """The manifest requires something that sources do not support; it has to be changed."""


def partitions_of(stream: Stream) -> tuple[str, ...]:
    """Return the names of a stream's source partitions, such as `payments/0`.

    Raises:
        SourceUnsupported: this kind of source is not supported yet.
    """
    match stream.source:
        case FilesSource(partitions=count) | GeneratorSource(partitions=count):
            return tuple(f"{stream.name}/{index}" for index in range(count))
        case HttpSource() | KafkaSource():
            raise not_yet(stream)


def index_of(partition: str) -> int:
    """Return the number of a source partition within its stream."""
    return int(partition.rpartition("/")[2])


def not_yet(stream: Stream) -> SourceUnsupported:
    """Return the error for a stream whose kind of source is not supported yet."""
    kind = "http" if isinstance(stream.source, HttpSource) else "kafka"
    return SourceUnsupported(
        f"stream {stream.name} has a source of kind {kind}, which cannot be read yet; "
        "use files or generator"
    )

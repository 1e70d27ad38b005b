"""Which source partitions a stream has. Who only wants to know that need not load any source."""

from tandem_core.model.spec import FilesSource, GeneratorSource, HttpSource, KafkaSource, Stream


class SourceUnsupported(Exception):
    """The manifest asks for something that sources cannot do. Only another manifest helps."""


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
            raise not_yet(stream)


def not_yet(stream: Stream) -> SourceUnsupported:
    """Why a stream whose kind of source is not there yet cannot be read."""
    kind = "http" if isinstance(stream.source, HttpSource) else "kafka"
    return SourceUnsupported(
        f"stream {stream.name} has a source of kind {kind}, which cannot be read yet; "
        "use files or generator"
    )

"""Opens source partitions."""

from tandem_core.contract.partitions import index_of, not_yet
from tandem_core.model.spec import FilesSource, GeneratorSource, HttpSource, KafkaSource, Stream
from tandem_runtime.sources.base import SourcePartition
from tandem_runtime.sources.files.partition import FilesPartition
from tandem_runtime.sources.generator.partition import GeneratorPartition
from tandem_runtime.sources.pacing import Clock, MonotonicClock


def open_partition(stream: Stream, partition: str, clock: Clock | None = None) -> SourcePartition:
    """Open a source partition by its name; paths are taken relative to the working directory.

    Raises:
        SourceUnsupported: this kind of source cannot be read yet, or not with this schema.
    """
    clock = clock or MonotonicClock()
    match stream.source:
        case FilesSource() as source:
            return FilesPartition(stream, source, index_of(partition), clock)
        case GeneratorSource() as source:
            return GeneratorPartition(stream, source, index_of(partition), clock)
        case HttpSource() | KafkaSource():
            raise not_yet(stream)

"""The spec of a `StreamPipeline`: every field with its kind, default and meaning.

Names are those of the manifest, in snake case. Kinds check each value by itself; rules over several
fields are in `tandem_core.model.rules`.
"""

from enum import StrEnum

from tandem_core.model.change import ChangeSpec
from tandem_core.model.ddl.types import Schema
from tandem_core.model.fields.declarations import Document, Inline, OneOf, document, setting
from tandem_core.model.fields.kinds import (
    Choice,
    DurationKind,
    Flag,
    ListOf,
    Number,
    Size,
    Text,
    Whole,
)
from tandem_core.model.fields.quantities import ByteSize, Duration
from tandem_core.model.fields.spec_kinds import SchemaText, SparkConf, SqlQuery, SqlText
from tandem_core.model.pods import Merges, Pairs, Splits

_KI, _MI, _GI = 2**10, 2**20, 2**30
_SECOND, _HOUR, _DAY = 1_000, 3_600_000, 86_400_000

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_IDENTIFIER = Text(
    "a plain SQL name: letters, digits and underscores, not beginning with a digit",
    r"[A-Za-z_][A-Za-z0-9_]*",
    longest=63,
)
_COLUMN = Text("the name of a column", longest=63)
_FILE_PATH = Text("the path of a directory", r"[^\x00]*[^\s\x00][^\x00]*", longest=1024)
_TOPIC = Text("the name of a Kafka topic", r"[A-Za-z0-9._-]+", longest=249)
_BROKERS = Text(
    "Kafka brokers as host:port, separated by commas",
    r"[^\s,:]+:\d{1,5}(,[^\s,:]+:\d{1,5})*",
    longest=1024,
)
_ROWS_PER_SECOND = Whole(1, 10_000_000)

# Lists are short because the API server bounds the cost of its rules.
_MOST_STREAMS, _MOST_KEY_COLUMNS, _MOST_SINKS = 8, 8, 16


class FileFormat(StrEnum):
    """The format of a source's files."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class ResultFormat(StrEnum):
    """The format of a sink's files."""

    JSON = "json"
    PARQUET = "parquet"


class StartingOffsets(StrEnum):
    """The start position of a Kafka source that has no position yet."""

    EARLIEST = "earliest"
    LATEST = "latest"


class OutputMode(StrEnum):
    """Which rows an epoch delivers."""

    APPEND = "append"
    UPDATE = "update"


class OnError(StrEnum):
    """The handling of rows that do not fit the schema and of files that cannot be read."""

    DEAD_LETTER = "deadLetter"
    FAIL = "fail"


@document
class FilesSource:
    """Rows from the files of a directory, in the order of their names."""

    path: str = setting(_FILE_PATH, doc="Directory with the files.")
    format: FileFormat = setting(Choice(FileFormat), doc="Format of the files.")
    bounded: bool = setting(
        Flag(),
        default=False,
        doc="Whether the stream ends after the files present at the start; if not, new files are "
        "read as they appear.",
    )
    partitions: int = setting(
        Whole(1, 1024),
        default=1,
        doc="Source partitions, to which files are dealt by name; with more than one, the order "
        "between files is not kept.",
    )
    rows_per_second: int | None = setting(
        _ROWS_PER_SECOND,
        default=None,
        doc="Pace of the whole stream; as fast as possible if unset.",
    )


@document
class GeneratorSource:
    """Rows generated from a seed: the same seed gives the same rows."""

    rows_per_second: int = setting(_ROWS_PER_SECOND, doc="Pace of the whole stream.")
    keys: int = setting(Whole(1, 1_000_000_000), doc="Number of distinct keys.")
    skew: float = setting(
        Number(0, 3),
        default=0.0,
        doc="Exponent of the Zipf distribution over the keys; 0 makes all keys equally frequent.",
    )
    seed: int = setting(Whole(0), default=0, doc="Seed of all random values.")
    rows: int | None = setting(
        Whole(1), default=None, doc="Number of rows after which the stream ends; never if unset."
    )
    jitter: Duration = setting(
        DurationKind(Duration(0), Duration(_HOUR)),
        default=Duration(0),
        doc="How far event times may be out of order.",
    )
    partitions: int = setting(
        Whole(1, 1024),
        default=1,
        doc="Source partitions, to which keys are dealt; the rows are the same for any number.",
    )


@document
class HttpSource:
    """Not supported yet. Rows pushed to any split's `/streams/<name>`, as JSON lines or Arrow."""


@document
class KafkaSource:
    """Not supported yet. Rows of a Kafka topic; its partitions are the source partitions."""

    bootstrap_servers: str = setting(_BROKERS, doc="Bootstrap brokers.")
    topic: str = setting(_TOPIC, doc="Topic to read.")
    starting_offsets: StartingOffsets = setting(
        Choice(StartingOffsets),
        default=StartingOffsets.EARLIEST,
        doc="Where to start while there is no position yet.",
    )


Source = FilesSource | GeneratorSource | HttpSource | KafkaSource


@document
class Watermark:
    """The event time of a stream, and its tolerance for late rows."""

    column: str = setting(_COLUMN, doc="Column with the event time, a TIMESTAMP.")
    delay: Duration = setting(
        DurationKind(Duration(0), Duration(30 * _DAY)), doc="How late a row may be and still count."
    )
    idle_timeout: Duration | None = setting(
        DurationKind(Duration(1), Duration(30 * _DAY)),
        default=None,
        doc="After this long without a row a source partition no longer holds the watermark back; "
        "never if unset.",
    )


@document
class Stream:
    """One logical input."""

    name: str = setting(_IDENTIFIER, doc="Name of the stream, and of its table in the query.")
    schema: Schema = setting(SchemaText(), doc="Columns, in Spark's DDL.")
    key: tuple[str, ...] = setting(
        ListOf(_COLUMN, least=1, most=_MOST_KEY_COLUMNS),
        doc="Columns by which rows are partitioned. Across streams they correspond by position "
        "and have equal types.",
    )
    source: Source = setting(
        OneOf[Source](
            {
                "files": Document(FilesSource),
                "generator": Document(GeneratorSource),
                "http": Document(HttpSource),
                "kafka": Document(KafkaSource),
            }
        ),
        doc="Where rows come from.",
    )
    watermark: Watermark | None = setting(
        Document(Watermark), default=None, doc="Event time; without it no row is ever late."
    )
    on_error: OnError = setting(
        Choice(OnError),
        default=OnError.DEAD_LETTER,
        doc="Handling of rows that do not fit the schema, and of files that cannot be read, are "
        "gone or came too late for their place: set aside and counted, or the pipeline fails.",
    )


@document
class PythonQuery:
    """A query built by a Python function, from data frames by stream name to one data frame."""

    file: str = setting(
        Text("the path of a Python file, ending in .py", r"[^\x00]*[^\x00/]\.py", longest=1024),
        doc="Python file, relative to the manifest.",
    )
    function: str = setting(
        Text("the name of a function", r"[A-Za-z_][A-Za-z0-9_]*", longest=255),
        doc="Function that takes `dict[str, DataFrame]` and returns the result as a `DataFrame`.",
    )


@document
class Query:
    """The query that every pair runs over its own keys."""

    program: SqlQuery | PythonQuery = setting(
        Inline[SqlQuery | PythonQuery](
            {
                "sql": SqlText(),
                "python": Document(PythonQuery),
            }
        ),
        doc="The query itself.",
    )
    output_mode: OutputMode = setting(
        Choice(
            OutputMode,
            refused={
                "complete": "complete would deliver the whole result again in every epoch, so an "
                "epoch would grow without bound; update delivers what changed"
            },
        ),
        default=OutputMode.APPEND,
        doc="`append` delivers final rows once, `update` the rows that an epoch changed.",
    )


@document
class Epoch:
    """The interval and size of epochs; each is one micro-batch at every replica."""

    interval: Duration = setting(
        DurationKind(Duration(50), Duration(_HOUR)),
        default=Duration(500),
        doc="Time between two cuts.",
        fixed=True,
    )
    max_bytes: ByteSize = setting(
        Size(ByteSize(64 * _KI), ByteSize(_GI)),
        default=ByteSize(32_000_000),
        doc="Maximum size of an epoch; with a backlog, epochs grow to this size.",
        fixed=True,
    )


@document
class FilesSink:
    """One file for each epoch that has rows, named by the epoch."""

    path: str = setting(_FILE_PATH, doc="Directory for the files.")
    format: ResultFormat = setting(Choice(ResultFormat), doc="Format of the files.")


@document
class ConsoleSink:
    """Rows printed by the merge, for trying things out."""


@document
class KafkaSink:
    """Not supported yet. Rows sent to a Kafka topic, each epoch in one transaction."""

    bootstrap_servers: str = setting(_BROKERS, doc="Bootstrap brokers.")
    topic: str = setting(_TOPIC, doc="Topic to write.")


@document
class HttpSink:
    """Not supported yet. Rows posted to a server, with pair and epoch as idempotency key."""

    url: str = setting(
        Text("an http or https address", r"https?://\S+", longest=2048), doc="Where to post."
    )


SinkTarget = FilesSink | ConsoleSink | KafkaSink | HttpSink


@document
class SinkSpec:
    """A destination of the results."""

    name: str = setting(
        Text("a name of small letters, digits and dashes", _LABEL, longest=63),
        doc="Name of the sink.",
    )
    target: SinkTarget = setting(
        Inline[SinkTarget](
            {
                "files": Document(FilesSink),
                "console": Document(ConsoleSink),
                "kafka": Document(KafkaSink),
                "http": Document(HttpSink),
            }
        ),
        doc="The sink itself.",
    )


@document
class Spark:
    """Settings of each replica's Spark driver."""

    cores: int = setting(
        Whole(1, 256), default=1, doc="Task slots of a driver, `local[n]`.", fixed=True
    )
    memory: ByteSize = setting(
        # Measured: a heap of 512 MiB is the least that Spark supports, and the JVM's own needs
        # and the Python process come to about 200 MiB.
        Size(ByteSize(768 * _MI), ByteSize(1024 * _GI), "a driver does not run in less"),
        default=ByteSize(_GI),
        doc="Memory of a whole replica; the heap is derived from it.",
        fixed=True,
    )
    conf: tuple[tuple[str, str], ...] = setting(
        SparkConf(),
        default=(),
        doc="Additional settings for Spark. Those that must be equal in both twins are refused.",
        fixed=True,
    )


@document
class Spec:
    """The desired state of a pipeline."""

    streams: tuple[Stream, ...] = setting(
        ListOf(Document(Stream), least=1, most=_MOST_STREAMS), doc="The inputs.", fixed=True
    )
    query: Query = setting(Document(Query), doc="The query.", fixed=True)
    sinks: tuple[SinkSpec, ...] = setting(
        ListOf(Document(SinkSpec), least=1, most=_MOST_SINKS),
        doc="The outputs; every sink gets all results.",
        fixed=True,
    )
    epoch: Epoch = setting(Document(Epoch), default=Epoch(), doc="How streams are cut into epochs.")
    splits: Splits = setting(
        Document(Splits), default=Splits(), doc="The pods that read the sources."
    )
    pairs: Pairs = setting(Document(Pairs), default=Pairs(), doc="The pairs that own the keys.")
    merges: Merges = setting(
        Document(Merges), default=Merges(), doc="The pods that deliver results."
    )
    change: ChangeSpec = setting(
        Document(ChangeSpec), default=ChangeSpec(), doc="How a running pipeline is changed."
    )
    spark: Spark = setting(Document(Spark), default=Spark(), doc="Settings of each Spark driver.")
    suspend: bool = setting(
        Flag(), default=False, doc="Pauses the sources and drains what is in flight; pods stay."
    )

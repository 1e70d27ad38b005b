"""Rules over several fields of a pipeline.

Each rule takes one document and yields its problems, with paths relative to that document.
Accessing a field that could not be read ends the rule, so rules over many documents check `is_set`
first. The decorator of a rule has the part that the API server can check, in CEL: that parses no
DDL and does not normalise paths.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tandem_core.model.change import LEAST_SURGE, ChangeSpec
from tandem_core.model.ddl.types import Array, Column, DataType, Map, Simple, Struct
from tandem_core.model.fields.declarations import is_set
from tandem_core.model.fields.problems import Fault, Path, Problem, suggestion
from tandem_core.model.fields.quantities import GO_DURATION
from tandem_core.model.fields.rule_declarations import CelRule, Rule, rule
from tandem_core.model.fields.spec_kinds import SqlQuery
from tandem_core.model.pod_rules import POD_RULES
from tandem_core.model.rule_helpers import is_within, normal_path, repeated
from tandem_core.model.spec import FilesSink, FilesSource, SinkSpec, Spec, Stream

RESERVED_COLUMNS = ("_epoch", "_pair", "_tick", "_wm")
"""Columns that the framework adds to rows or results."""

_UNFIT_KEYS: dict[object, str] = {
    Simple.FLOAT: "floating numbers that look equal need not be; use DECIMAL or BIGINT",
    Simple.DOUBLE: "floating numbers that look equal need not be; use DECIMAL or BIGINT",
    Array: "a list cannot be hashed the same everywhere; use plain columns",
    Map: "a map has no order and cannot be hashed; use plain columns",
    Struct: "use the struct's fields as columns of their own",
}


@rule(
    CelRule(
        "self.key.all(column, column.contains('`') || self.schema.contains(column))",
        "expected key columns that stand in the schema",
    )
)
def _key_is_in_schema(stream: Stream) -> Iterator[Problem]:
    for position, name in enumerate(stream.key):
        if stream.schema.column(name) is None:
            wanted = _a_column_of(stream, name)
            yield Problem(("key", position), name, Fault.NO_SUCH_COLUMN, wanted)


@rule(
    CelRule(
        "self.key.all(column, self.key.exists_one(other, other == column))",
        "expected each key column once",
    )
)
def _key_repeats_no_column(stream: Stream) -> Iterator[Problem]:
    for position, name in enumerate(stream.key):
        if name in stream.key[:position]:
            yield Problem(("key", position), name, Fault.DUPLICATE, "each key column once")


@rule()
def _key_can_be_hashed(stream: Stream) -> Iterator[Problem]:
    for position, name in enumerate(stream.key):
        column = stream.schema.column(name)
        reason = column and _why_no_key(column.type)
        if column and reason:
            wanted = f"a key of another type than {column.type}: {reason}"
            yield Problem(("key", position), name, Fault.UNFIT_TYPE, wanted)


def _why_no_key(kind: DataType) -> str | None:
    return _UNFIT_KEYS.get(kind if isinstance(kind, Simple) else type(kind))


@rule(
    CelRule(
        "!has(self.watermark) || self.watermark.column.contains('`') || "
        "self.schema.contains(self.watermark.column)",
        "expected a watermark column that stands in the schema",
    )
)
def _watermark_is_over_a_timestamp(stream: Stream) -> Iterator[Problem]:
    if stream.watermark is None:
        return
    name = stream.watermark.column
    column = stream.schema.column(name)
    at: Path = ("watermark", "column")
    if column is None:
        yield Problem(at, name, Fault.NO_SUCH_COLUMN, _a_column_of(stream, name))
    elif column.type != Simple.TIMESTAMP:
        wanted = f"a column of type TIMESTAMP, not {column.type}; declare it so in the schema"
        yield Problem(at, name, Fault.UNFIT_TYPE, wanted)


@rule()
def _columns_leave_reserved_names(stream: Stream) -> Iterator[Problem]:
    for column in stream.schema.columns:
        if column.name.lower() in RESERVED_COLUMNS:
            wanted = f"another name: {', '.join(RESERVED_COLUMNS)} belong to the framework"
            yield Problem(("schema",), column.name, Fault.RESERVED, wanted)


def _a_column_of(stream: Stream, name: str) -> str:
    names = stream.schema.names
    return f"a column of the schema ({', '.join(names)}){suggestion(name, names)}"


@rule(
    CelRule(
        "self.all(stream, stream.key.size() == self[0].key.size())",
        "expected as many key columns in each stream: across streams they correspond by position",
        at="streams",
    )
)
def _keys_correspond(spec: Spec) -> Iterator[Problem]:
    """Check that rows with equal keys meet in one pair, whatever their stream (co-partitioning)."""
    keyed = [
        (position, stream)
        for position, stream in enumerate(spec.streams)
        if is_set(stream, "name", "key", "schema")
    ]
    for position, stream in keyed[1:]:
        first = keyed[0][1]
        at: Path = ("streams", position, "key")
        if len(stream.key) != len(first.key):
            wanted = f"as many key columns as {first.name} has: {', '.join(first.key)}"
            yield Problem(at, list(stream.key), Fault.MISMATCH, wanted)
            continue
        for index, (ours, theirs) in enumerate(zip(_keys(stream), _keys(first), strict=True)):
            if ours and theirs and ours.type != theirs.type:
                wanted = (
                    f"a column of type {theirs.type}, as {first.name}.{theirs.name} has in this "
                    f"place of the key, not {ours.type}"
                )
                yield Problem((*at, index), ours.name, Fault.MISMATCH, wanted)


def _keys(stream: Stream) -> list[Column | None]:
    return [stream.schema.column(name) for name in stream.key]


@rule(
    CelRule(
        "self.all(stream, self.exists_one(other, "
        "other.name.lowerAscii() == stream.name.lowerAscii()))",
        "expected a name for each stream that no other stream has, whatever its case",
        at="streams",
    )
)
def _stream_names_differ(spec: Spec) -> Iterator[Problem]:
    # Spark takes table names without regard to case.
    names = [stream.name.lower() if is_set(stream, "name") else None for stream in spec.streams]
    for position in repeated(names):
        at: Path = ("streams", position, "name")
        wanted = "a name that no other stream has, whatever its case"
        yield Problem(at, spec.streams[position].name, Fault.DUPLICATE, wanted)


@rule(
    CelRule(
        "self.all(sink, self.exists_one(other, other.name == sink.name))",
        "expected a name for each sink that no other sink has",
        at="sinks",
    )
)
def _sink_names_differ(spec: Spec) -> Iterator[Problem]:
    names = [sink.name if is_set(sink, "name") else None for sink in spec.sinks]
    for position in repeated(names):
        at: Path = ("sinks", position, "name")
        yield Problem(at, names[position], Fault.DUPLICATE, "a name that no other sink has")


@rule(
    CelRule(
        "self.all(sink, !has(sink.files) || self.exists_one(other, has(other.files) && "
        "other.files.path == sink.files.path))",
        "expected a directory of its own for each sink",
        at="sinks",
    )
)
def _sinks_share_no_directory(spec: Spec) -> Iterator[Problem]:
    directories = [_directory(sink) for sink in spec.sinks]
    for position in repeated(directories):
        at: Path = ("sinks", position, "files", "path")
        wanted = "a directory of its own: another sink writes there"
        yield Problem(at, directories[position], Fault.DUPLICATE, wanted)


@rule(
    CelRule(
        "self.sinks.all(sink, !has(sink.files) || "
        "self.streams.all(stream, !has(stream.source.files) || "
        "(sink.files.path != stream.source.files.path && (sink.files.path.contains('..') || "
        "!sink.files.path.startsWith(stream.source.files.path + '/')))))",
        "expected sinks to write to directories that no stream reads: results would come in "
        "again as rows",
        blames="sinks",
    )
)
def _sinks_write_to_no_source(spec: Spec) -> Iterator[Problem]:
    read = [
        normal_path(stream.source.path)
        for stream in spec.streams
        if is_set(stream, "source")
        and isinstance(stream.source, FilesSource)
        and is_set(stream.source, "path")
    ]
    for position, sink in enumerate(spec.sinks):
        directory = _directory(sink)
        if directory is not None and any(is_within(directory, source) for source in read):
            at: Path = ("sinks", position, "files", "path")
            wanted = "a directory that no stream reads: results would come in again as rows"
            yield Problem(at, directory, Fault.MISMATCH, wanted)


def _directory(sink: SinkSpec) -> str | None:
    if not is_set(sink, "target") or not isinstance(sink.target, FilesSink):
        return None
    return normal_path(sink.target.path) if is_set(sink.target, "path") else None


@rule(
    # Only the model compares durations with days: the API server's durations have none.
    CelRule(
        f"!self.epoch.interval.matches(r'^{GO_DURATION}$') || self.streams.all(stream, "
        "!has(stream.watermark) || !has(stream.watermark.idleTimeout) || "
        f"!stream.watermark.idleTimeout.matches(r'^{GO_DURATION}$') || "
        "duration(stream.watermark.idleTimeout) >= duration(self.epoch.interval))",
        "expected each watermark.idleTimeout to be at least spec.epoch.interval: idleness is told "
        "once per epoch",
        blames="streams",
    )
)
def _idle_timeouts_outlast_an_epoch(spec: Spec) -> Iterator[Problem]:
    interval = spec.epoch.interval
    for position, stream in enumerate(spec.streams):
        if not is_set(stream, "watermark") or not is_set(stream.watermark, "idle_timeout"):
            continue
        timeout = stream.watermark.idle_timeout if stream.watermark else None
        if timeout is not None and timeout < interval:
            at: Path = ("streams", position, "watermark", "idleTimeout")
            wanted = f"at least the epoch interval, {interval}: idleness is told once per epoch"
            yield Problem(at, str(timeout), Fault.OUT_OF_RANGE, wanted)


@rule(
    CelRule(
        "!has(self.query.sql) || self.streams.all(stream, "
        "self.query.sql.lowerAscii().contains(stream.name.lowerAscii()))",
        "expected streams that spec.query.sql reads; leave out what is not needed",
        blames="streams",
    )
)
def _sql_reads_every_stream(spec: Spec) -> Iterator[Problem]:
    if not isinstance(spec.query.program, SqlQuery):
        return
    text = spec.query.program.text.lower()
    for position, stream in enumerate(spec.streams):
        # Only Spark can tell whether a stream is read; one whose name does not occur is not.
        if is_set(stream, "name") and stream.name.lower() not in text:
            at: Path = ("streams", position, "name")
            wanted = "a stream that spec.query.sql reads; leave out what is not needed"
            yield Problem(at, stream.name, Fault.MISMATCH, wanted)


_SURGE = f"at least {LEAST_SURGE}: a pair is split into two new ones"


@rule(
    CelRule(
        # The API server checks a default, here an empty one, before it fills in those of its parts.
        f"!has(self.maxSurge) || self.maxSurge >= {LEAST_SURGE}",
        f"expected maxSurge to be {_SURGE}",
    )
)
def _surge_suffices_to_split(change: ChangeSpec) -> Iterator[Problem]:
    if change.max_surge < LEAST_SURGE:
        yield Problem(("maxSurge",), change.max_surge, Fault.OUT_OF_RANGE, _SURGE)


RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    Stream: (
        _columns_leave_reserved_names,
        _key_is_in_schema,
        _key_repeats_no_column,
        _key_can_be_hashed,
        _watermark_is_over_a_timestamp,
    ),
    Spec: (
        _stream_names_differ,
        _keys_correspond,
        _sql_reads_every_stream,
        _idle_timeouts_outlast_an_epoch,
        _sink_names_differ,
        _sinks_share_no_directory,
        _sinks_write_to_no_source,
    ),
    ChangeSpec: (_surge_suffices_to_split,),
    **POD_RULES,
}

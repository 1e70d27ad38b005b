"""Kinds of values that only a pipeline's spec has: schemas, SQL, settings for Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.model.ddl import Schema
from tandem.model.ddl_parser import DdlError, parse_schema
from tandem.model.kinds import Kind, Reading, Text, Unreadable
from tandem.model.problems import Fault, Path

_TWINS = "both twins must have it equal, so the framework sets it"
_OWNED = {
    "spark.app.name": "the framework names its drivers",
    "spark.driver.cores": "set spec.spark.cores",
    "spark.driver.memory": "set spec.spark.memory; the heap is derived from it",
    "spark.master": "set spec.spark.cores; a driver runs local[cores]",
    "spark.sql.adaptive.enabled": "stateful queries run without it",
    "spark.sql.session.timeZone": "the session's zone is UTC in every replica",
    "spark.sql.shuffle.partitions": _TWINS,
    "spark.sql.streaming.checkpointFileManagerClass": "checkpoints need the framework's own",
    "spark.sql.streaming.checkpointLocation": "the framework keeps checkpoints on the volume",
    "spark.sql.streaming.minBatchesToRetain": "copies for a twin need what the framework keeps",
    "spark.sql.streaming.multipleWatermarkPolicy": "watermarks belong to the framework",
    "spark.sql.streaming.noDataMicroBatches.enabled": "an epoch is exactly one micro-batch",
    "spark.submit.deployMode": "a driver runs local[cores]",
}
_OWNED_PREFIXES = {
    "spark.dynamicAllocation.": "drivers run local[n], without executors",
    "spark.executor.": "drivers run local[n], without executors",
    "spark.executorEnv.": "drivers run local[n], without executors",
    "spark.hadoop.": "checkpoints need the framework's file system, and nothing else is read",
    "spark.kubernetes.": "the operator makes the pods",
    "spark.sql.streaming.stateStore.": _TWINS,
}


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query as SQL over tables that are named as the streams."""

    text: str


@dataclass(frozen=True, slots=True)
class SqlText(Kind[SqlQuery]):
    """A text that will be given to Spark, which alone can judge it."""

    cls: type[SqlQuery] = SqlQuery

    @property
    def expected(self) -> str:
        return "a SELECT over tables that are named as the streams"

    def read(self, value: object, at: Path, reading: Reading) -> SqlQuery:
        return SqlQuery(Text(self.expected, longest=100_000).read(value, at, reading))

    def write(self, value: Any) -> object:
        return value.text


@dataclass(frozen=True, slots=True)
class SchemaText(Kind[Schema]):
    """A schema in Spark's DDL."""

    @property
    def expected(self) -> str:
        return "columns in Spark's DDL, such as `user STRING, amount BIGINT, at TIMESTAMP`"

    def read(self, value: object, at: Path, reading: Reading) -> Schema:
        text = Text(self.expected, longest=100_000).read(value, at, reading)
        try:
            return parse_schema(text)
        except DdlError as error:
            for fault in error.faults:
                reading.report(at, fault.piece, Fault.BAD_FORMAT, fault.expected)
            raise Unreadable from None

    def write(self, value: Any) -> object:
        return str(value)


@dataclass(frozen=True, slots=True)
class SparkConf(Kind[tuple[tuple[str, str], ...]]):
    """Settings for Spark by name, without those that the framework owns; sorted by name."""

    @property
    def expected(self) -> str:
        return "a mapping from names that begin with `spark.` to values"

    def read(self, value: object, at: Path, reading: Reading) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, Mapping):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        conf: dict[str, str] = {}
        for name, entry in value.items():
            try:
                conf[str(name)] = self._entry(str(name), entry, (*at, str(name)), reading)
            except Unreadable:
                continue
        if len(conf) < len(value):
            raise Unreadable
        return tuple(sorted(conf.items()))

    def write(self, value: Any) -> object:
        return dict(value)

    def _entry(self, name: str, entry: object, at: Path, reading: Reading) -> str:
        if not name.startswith("spark."):
            reading.reject(at, entry, Fault.BAD_FORMAT, "a name that begins with `spark.`")
        reason = _why_owned(name)
        if reason:
            reading.reject(at, entry, Fault.RESERVED, f"leave it out: {reason}")
        if isinstance(entry, bool):
            return "true" if entry else "false"
        if not isinstance(entry, str | int | float):
            reading.reject(at, entry, Fault.WRONG_TYPE, "a text, a number, true or false")
        return str(entry)


def _why_owned(name: str) -> str | None:
    """The reason why a user may not set this, if it is so."""
    by_prefix = (why for prefix, why in _OWNED_PREFIXES.items() if name.startswith(prefix))
    return _OWNED.get(name) or next(by_prefix, None)

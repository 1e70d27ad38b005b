"""Kinds of values that only a pipeline's spec has.

Schemas, SQL, settings for Spark, mappings from names to texts, and Kubernetes' own types.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tandem_core.model.ddl.parser import DdlError, parse_schema
from tandem_core.model.ddl.types import Schema
from tandem_core.model.fields.kinds import Kind, Reading, Text, Unreadable
from tandem_core.model.fields.problems import ABSENT, Fault, Path

ANY_TEXT: Final = Text("a text", r"(?s).*", longest=4096)

_MOST_VALUES = 500
"""Values in one object of a type of Kubernetes. Bounds the expansion of YAML aliases, too."""

_TWINS = "both twins must have it equal, so the framework sets it"
OWNED_SETTINGS = {
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
OWNED_PREFIXES = {
    "spark.dynamicAllocation.": "drivers run local[n], without executors",
    "spark.executor.": "drivers run local[n], without executors",
    "spark.executorEnv.": "drivers run local[n], without executors",
    "spark.hadoop.": "checkpoints need the framework's file system, and nothing else is read",
    "spark.kubernetes.": "the operator makes the pods",
    "spark.sql.streaming.stateStore.": _TWINS,
}


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A SQL query over tables named after the streams."""

    text: str


@dataclass(frozen=True, slots=True)
class SqlText(Kind[SqlQuery]):
    """The text of a SQL query, which only Spark can check."""

    cls: type[SqlQuery] = SqlQuery
    longest: int = 32_768

    @property
    def expected(self) -> str:
        return "a SELECT over tables that are named as the streams"

    def read(self, value: object, at: Path, reading: Reading) -> SqlQuery:
        return SqlQuery(Text(self.expected, longest=self.longest).read(value, at, reading))

    def write(self, value: Any) -> object:
        return value.text


@dataclass(frozen=True, slots=True)
class SchemaText(Kind[Schema]):
    """A schema in Spark's DDL."""

    longest: int = 8_192

    @property
    def expected(self) -> str:
        return "columns in Spark's DDL, such as `user STRING, amount BIGINT, at TIMESTAMP`"

    def read(self, value: object, at: Path, reading: Reading) -> Schema:
        text = Text(self.expected, longest=self.longest).read(value, at, reading)
        try:
            return parse_schema(text)
        except DdlError as error:
            for fault in error.faults:
                reading.report(at, fault.piece, Fault.BAD_FORMAT, fault.expected)
            raise Unreadable from None

    def write(self, value: Any) -> object:
        return str(value)


@dataclass(frozen=True, slots=True)
class TextMap(Kind[tuple[tuple[str, str], ...]]):
    """Texts by name, sorted by name."""

    what: str = "a mapping from names to texts"
    value: Kind[str] = ANY_TEXT
    most: int = 64

    @property
    def expected(self) -> str:
        return self.what

    def read(self, value: object, at: Path, reading: Reading) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, Mapping):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        if len(value) > self.most:
            wanted = f"{self.expected}, at most {self.most} of them"
            reading.reject(at, value, Fault.OUT_OF_RANGE, wanted)
        texts: dict[str, str] = {}
        for name, entry in value.items():
            here = (*at, str(name))
            try:
                self.check_name(str(name), entry, here, reading)
                texts[str(name)] = self.value.read(entry, here, reading)
            except Unreadable:
                continue
        if len(texts) < len(value):
            raise Unreadable
        return tuple(sorted(texts.items()))

    def write(self, value: Any) -> object:
        return dict(value)

    def check_name(self, name: str, entry: object, at: Path, reading: Reading) -> None:
        """Reject an entry with an invalid name; here all names are valid."""


@dataclass(frozen=True, slots=True)
class SparkConf(TextMap):
    """Spark settings by name, except those that the framework sets."""

    what: str = "a mapping from names that begin with `spark.` to texts"

    def check_name(self, name: str, entry: object, at: Path, reading: Reading) -> None:
        if not name.startswith("spark."):
            reading.reject(at, entry, Fault.BAD_FORMAT, "a name that begins with `spark.`")
        reason = _why_owned(name)
        if reason:
            reading.reject(at, entry, Fault.RESERVED, f"leave it out: {reason}")


def _why_owned(name: str) -> str | None:
    """Return the reason why a user may not set this; None if it is allowed."""
    by_prefix = (why for prefix, why in OWNED_PREFIXES.items() if name.startswith(prefix))
    return OWNED_SETTINGS.get(name) or next(by_prefix, None)


@dataclass(frozen=True, slots=True)
class Quantity(Kind[str]):
    """An amount as Kubernetes writes it, or a whole number."""

    pattern: str = r"[0-9]+(\.[0-9]+)?(m|k|[MGTP]|[KMGTP]i)?"

    @property
    def expected(self) -> str:
        return "an amount as Kubernetes writes it, such as 500m or 2Gi"

    def read(self, value: object, at: Path, reading: Reading) -> str:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and not isinstance(value, str):
            reading.reject(at, value, Fault.WRONG_TYPE, f"{self.expected}; put it in quotes")
        text = str(value)
        if not re.fullmatch(self.pattern, text):
            reading.reject(at, value, Fault.BAD_FORMAT, self.expected)
        return text


@dataclass(frozen=True, slots=True)
class Json:
    """Plain data as given; the order of fields does not matter for equality."""

    text: str

    @property
    def data(self) -> dict[str, Any]:
        """The data, a copy for each caller."""
        found: dict[str, Any] = json.loads(self.text)
        return found


@dataclass(frozen=True, slots=True)
class JsonObject(Kind[Json]):
    """An object of a type of Kubernetes, which the API server validates.

    Only the fields in `texts` are checked: each must be present, as a text.
    """

    what: str
    texts: tuple[str, ...] = ()
    longest: int = 1024

    @property
    def expected(self) -> str:
        return self.what

    def read(self, value: object, at: Path, reading: Reading) -> Json:
        if not isinstance(value, Mapping):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        if not _is_plain(value):
            wanted = f"{self.expected}, as plain data of at most {_MOST_VALUES} values"
            reading.reject(at, value, Fault.BAD_FORMAT, wanted)
        unread = [name for name in self.texts if not self._is_text(value, name, at, reading)]
        if unread:
            raise Unreadable
        return Json(json.dumps(value, sort_keys=True, separators=(",", ":")))

    def write(self, value: Any) -> object:
        return value.data

    def _is_text(
        self, value: Mapping[object, object], name: str, at: Path, reading: Reading
    ) -> bool:
        here = (*at, name)
        if value.get(name) is None:
            reading.report(here, ABSENT, Fault.MISSING, "a text that is not empty")
            return False
        try:
            Text(longest=self.longest).read(value[name], here, reading)
        except Unreadable:
            return False
        return True


def _is_plain(value: object) -> bool:
    """Whether the value can be written as JSON and has at most `_MOST_VALUES` parts."""
    waiting, seen = [value], 0
    while waiting:
        part = waiting.pop()
        seen += 1
        if seen > _MOST_VALUES:
            return False
        if isinstance(part, Mapping):
            if not all(isinstance(name, str) for name in part):
                return False
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, float):
            if not math.isfinite(part):
                return False
        elif part is not None and not isinstance(part, str | int):
            return False
    return True

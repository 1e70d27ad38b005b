"""Formats log records for programs: one JSON object on each line."""

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

FIELDS = "tandem_fields"
"""The attribute of a log record that holds a `HasFields`: `extra={FIELDS: value}`."""


@runtime_checkable
class HasFields(Protocol):
    """A value that is logged as fields beside the message."""

    def fields(self) -> Mapping[str, object]:
        """The fields by name."""


class JsonLines(logging.Formatter):
    """Formats a record as one line: time, level, logger, message, then fields.

    `common` returns the fields of every line, read anew for each; the record's own replace them.
    """

    def __init__(self, common: Callable[[], Mapping[str, object]] = dict) -> None:
        super().__init__()
        self._common = common

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._common(),
        }
        own = getattr(record, FIELDS, None)
        if isinstance(own, HasFields):
            line |= own.fields()
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)

"""The lines that operator and pods write."""

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem_core.logs.json_lines import FIELDS, JsonLines


class Fields:
    """Logged beside the message."""

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def fields(self) -> Mapping[str, object]:
        return self._fields


def line_of(lines: JsonLines, message: str, *details: object, **more: Any) -> dict[str, Any]:
    """The line of a message, read again."""
    error = more.pop("exc_info", None)
    record = logging.LogRecord("tandem.x", logging.WARNING, "x.py", 1, message, details, error)
    record.created = 1_700_000_000.25
    vars(record).update(more)
    (line,) = lines.format(record).splitlines()
    read: dict[str, Any] = json.loads(line)
    return read


def test_line_has_time_level_logger_and_message_in_this_order() -> None:
    line = line_of(JsonLines(), "%s of %d", "zwölf", 12)
    assert list(line.items()) == [
        ("time", "2023-11-14T22:13:20.250+00:00"),
        ("level", "warning"),
        ("logger", "tandem.x"),
        ("message", "zwölf of 12"),
    ]


def test_common_fields_are_read_for_each_line() -> None:
    common = {"incarnation": 0}
    lines = JsonLines(lambda: common)
    assert line_of(lines, "before")["incarnation"] == 0
    common["incarnation"] = 1
    assert line_of(lines, "after")["incarnation"] == 1


def test_own_fields_follow_common_ones_and_replace_them() -> None:
    lines = JsonLines(lambda: {"pipeline": "a/b", "kind": "split"})
    line = line_of(lines, "m", **{FIELDS: Fields(pipeline="c/d", epoch=7)})
    assert list(line.items())[4:] == [("pipeline", "c/d"), ("kind", "split"), ("epoch", 7)]


def test_attribute_without_fields_is_ignored() -> None:
    assert "pipeline" not in line_of(JsonLines(), "m", **{FIELDS: "pipeline"})


def test_message_and_traceback_of_several_lines_stay_on_one() -> None:
    try:
        int("x")
    except ValueError:
        line = line_of(JsonLines(), "c\nd", exc_info=sys.exc_info())
    assert line["message"] == "c\nd"
    assert line["error"].splitlines()[0].startswith("Traceback")
    assert line["error"].splitlines()[-1].startswith("ValueError")


def test_value_that_json_does_not_know_is_written_as_text() -> None:
    assert line_of(JsonLines(lambda: {"path": Path("/x")}), "m")["path"] == "/x"

"""Problems of a document: the path, the value, and what is expected instead."""

import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum

Step = str | int
Path = tuple[Step, ...]
"""The path from the document's root to a value: names of fields and positions in lists."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Absent(Enum):
    """The value of a missing field, distinct from null."""

    ABSENT = "(missing)"


ABSENT = Absent.ABSENT


class Fault(StrEnum):
    """The kind of a problem, stable for programs; the sentence is for people."""

    MISSING = "Missing"
    UNKNOWN_FIELD = "UnknownField"
    WRONG_TYPE = "WrongType"
    BAD_FORMAT = "BadFormat"
    OUT_OF_RANGE = "OutOfRange"
    NOT_A_CHOICE = "NotAChoice"
    NOT_EXACTLY_ONE = "NotExactlyOne"
    DUPLICATE = "Duplicate"
    NO_SUCH_COLUMN = "NoSuchColumn"
    UNFIT_TYPE = "UnfitType"
    MISMATCH = "Mismatch"
    RESERVED = "Reserved"
    SYNTAX = "Syntax"
    UNSUPPORTED = "Unsupported"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a document.

    `expected` describes a valid value and, where it is not obvious, the reason; it never repeats
    the path or the value.
    """

    path: Path
    value: object
    fault: Fault
    expected: str

    def under(self, prefix: Path) -> "Problem":
        """Return the problem with `prefix` before its path."""
        return Problem(prefix + self.path, self.value, self.fault, self.expected)


def path_text(path: Path) -> str:
    """Format a path: `spec.streams[0].key[1]`, `spec.spark.conf["spark.x"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_NAME.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text or "(document)"


def value_text(value: object) -> str:
    """Format a value briefly, whatever its size."""
    if isinstance(value, Absent):
        return value.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _SHORT.repr(value)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word that `word` probably misspells, if any is similar enough."""
    by_lower = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the text `; did you mean "x"?`, or "" if no known word is similar enough."""
    match = nearest(word, known)
    return f'; did you mean "{match}"?' if match else ""


def _short() -> reprlib.Repr:
    short = reprlib.Repr()
    short.maxstring = 80
    short.maxlong = 40
    short.maxlevel = 2
    short.maxdict = short.maxlist = 4
    return short


_SHORT = _short()

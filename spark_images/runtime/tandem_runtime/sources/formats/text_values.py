"""Parses single values from text; these functions decide whether a value fits its column.

Vectorised readers are faster and may refuse more, but every value that they accept is accepted here
too, with the same result; everything they refuse is parsed here. Accepted are:

- BOOLEAN: `true` and `false` in any case;
- whole numbers: digits, with or without a minus before them;
- FLOAT and DOUBLE: decimal or scientific notation, `NaN`, `Infinity`, `-Infinity` and `inf`;
- DECIMAL: decimal or scientific notation, if the value fits without rounding;
- DATE: `2024-01-31`;
- TIMESTAMP: ISO 8601, `2024-01-31T23:59:59.123456+02:00`, also with a blank for the T, and without
  the zone (then it is UTC), the fraction, the seconds, the minutes or the time. Digits beyond the
  microsecond are cut off;
- TIMESTAMP_NTZ: the same. A zone is applied, so the result is in UTC;
- BINARY: Base64.

Dates and times are of the years 1 to 9999. Dates are returned as days and times as microseconds
since 1970, as Arrow expects them.
"""

import base64
import binascii
import decimal
import math
import re
from collections.abc import Callable
from datetime import date
from functools import partial

import pyarrow as pa

from tandem_core.model.ddl.types import DataType, Decimal, Simple

Parser = Callable[[str], object]

_SHOWN = 80
_WHOLE = re.compile(r"-?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    _DATE.pattern + r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_BITS = {Simple.TINYINT: 8, Simple.SMALLINT: 16, Simple.INT: 32, Simple.BIGINT: 64}
_LONGEST_NUMBER = 4000
"""Maximum digits of a number: longer ones fit no type, and `int` refuses about this many."""

_LAST_HOUR, _LAST_MINUTE = 23, 59
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
FIRST_DAY = date.min.toordinal() - _EPOCH_DAY
LAST_DAY = date.max.toordinal() - _EPOCH_DAY
FIRST_MICROSECOND = FIRST_DAY * _DAY
LAST_MICROSECOND = (LAST_DAY + 1) * _DAY - 1
"""Bounds of dates and times: the years 1 to 9999, as in Spark."""

_EXACT = decimal.Context(
    prec=2 * 38, Emax=10_000, Emin=-10_000, traps=[decimal.Inexact, decimal.InvalidOperation]
)


class Unfit(Exception):
    """A value does not fit its column; the message says why."""

    def __init__(self, reason: str, *, has_name: bool = False) -> None:
        super().__init__(reason)
        self._has_name = has_name

    def within(self, name: str) -> "Unfit":
        """Return the same problem, prefixed with the name of the column or field."""
        separator = "." if self._has_name else ": "
        return Unfit(f"{name}{separator}{self}", has_name=True)


def parser_of(kind: DataType) -> Parser:
    """Return the function that parses a value of this type; it raises `Unfit` for other text.

    Nested types are not allowed: they have no text form.
    """
    if isinstance(kind, Decimal):
        return partial(_decimal, kind)
    if kind in _BITS:
        return partial(_whole, kind)
    return _PARSERS[kind]


def unfit(value: object, kind: DataType) -> Unfit:
    """Return the error for a value that is not of this type."""
    return Unfit(f"{shown(value)} is no {kind}")


def shown(value: object) -> str:
    """Return a value as text for a message, shortened."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def is_not_finite(text: str) -> bool:
    """Whether a text stands for infinity or NaN."""
    return _INFINITE.fullmatch(text) is not None or text.lower().lstrip("+-") == "nan"


def text_value(text: str) -> str:
    """Return a text unless it has half a surrogate pair, which cannot be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit("half a surrogate pair stands in the text") from None
    return text


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise unfit(text, Simple.BOOLEAN)
    return lower == "true"


def _whole(kind: Simple, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise unfit(text, kind)
    limit = 1 << (_BITS[kind] - 1)
    if len(text) > _LONGEST_NUMBER or not -limit <= (value := int(text)) < limit:
        raise Unfit(f"{shown(text)} is beyond a {kind}")
    return value


def _double(text: str) -> float:
    # Both round to the nearest value; Python's conversion is ten times as fast.
    value = float(text) if _REAL.fullmatch(text) else _by_arrow(text, Simple.DOUBLE)
    return _within_range(value, text, Simple.DOUBLE)


def _float(text: str) -> float:
    return _within_range(_by_arrow(text, Simple.FLOAT), text, Simple.FLOAT)


def _by_arrow(text: str, kind: Simple) -> float:
    try:
        value: float = pa.scalar(text).cast(_FLOATING[kind]).as_py()
    except pa.ArrowInvalid:
        raise unfit(text, kind) from None
    return value


def _within_range(value: float, text: str, kind: Simple) -> float:
    if math.isinf(value) and not _INFINITE.fullmatch(text):
        raise Unfit(f"{shown(text)} is beyond a {kind}")
    return value


def _decimal(kind: Decimal, text: str) -> decimal.Decimal:
    if not _REAL.fullmatch(text):
        raise unfit(text, kind)
    if len(text) > _LONGEST_NUMBER:
        raise Unfit(f"{shown(text)} is beyond a {kind}")
    try:
        value = _EXACT.create_decimal(text)
        value = value.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except decimal.DecimalException:
        raise Unfit(f"{shown(text)} does not fit a {kind} without rounding") from None
    if value.adjusted() >= kind.precision - kind.scale and value:
        raise Unfit(f"{shown(text)} is beyond a {kind}")
    return value


def _date(text: str) -> int:
    found = _DATE.fullmatch(text)
    if found is None:
        raise unfit(text, Simple.DATE)
    return _day(found, text, Simple.DATE)


def _day(found: re.Match[str], text: str, kind: Simple) -> int:
    try:
        return date(int(found[1]), int(found[2]), int(found[3])).toordinal() - _EPOCH_DAY
    except ValueError:
        raise unfit(text, kind) from None


def _timestamp(kind: Simple, text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise unfit(text, kind)
    hour, minute, second = (int(found[group] or 0) for group in (4, 5, 6))
    if hour > _LAST_HOUR or minute > _LAST_MINUTE or second > _LAST_MINUTE:
        raise unfit(text, kind)
    fraction = int((found[7] or "")[:6].ljust(6, "0"))
    seconds = (hour * 60 + minute) * 60 + second - _offset(found[8], text, kind)
    value = _day(found, text, kind) * _DAY + seconds * 1_000_000 + fraction
    if not FIRST_MICROSECOND <= value <= LAST_MICROSECOND:
        raise Unfit(f"{shown(text)} is beyond a {kind}")
    return value


def _offset(zone: str | None, text: str, kind: Simple) -> int:
    """Return the seconds that a zone is ahead of UTC."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > _LAST_HOUR or minutes > _LAST_MINUTE:
        raise unfit(text, kind)
    return (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unfit(f"{shown(text)} is no Base64") from None


_FLOATING = {Simple.FLOAT: pa.float32(), Simple.DOUBLE: pa.float64()}
_PARSERS: dict[DataType, Parser] = {
    Simple.BOOLEAN: _boolean,
    Simple.FLOAT: _float,
    Simple.DOUBLE: _double,
    Simple.STRING: text_value,
    Simple.BINARY: _binary,
    Simple.DATE: _date,
    Simple.TIMESTAMP: partial(_timestamp, Simple.TIMESTAMP),
    Simple.TIMESTAMP_NTZ: partial(_timestamp, Simple.TIMESTAMP_NTZ),
}

"""Parses and formats durations and amounts of bytes.

Both are exact: formatting a parsed quantity and parsing it again gives the same quantity.
"""

import re
from dataclasses import dataclass

_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)

GO_DURATION = r"(\d{1,6}h)?(\d{1,7}m)?(\d{1,9}s)?(\d{1,12}ms)?"
"""Durations that the API server parses: it has no days, and more digits would overflow."""

_BINARY = {"Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
_DECIMAL = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}
_AS_SPARK = {"t": 2**40, "g": 2**30, "m": 2**20, "k": 2**10}
BYTES_PER_UNIT = {
    "": 1,
    **dict(reversed(_AS_SPARK.items())),
    **dict(reversed(_BINARY.items())),
    **dict(reversed(_DECIMAL.items())),
}
_BYTES = re.compile(r"(\d+)([A-Za-z]*)", re.ASCII)

# No sensible quantity is longer, and Python refuses to convert numbers of thousands of digits.
_LONGEST = 64


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in whole milliseconds."""

    milliseconds: int

    @property
    def seconds(self) -> float:
        """The same span in seconds."""
        return self.milliseconds / 1000

    def __str__(self) -> str:
        rest = self.milliseconds
        text = ""
        for unit, size in _MILLISECONDS.items():
            count, rest = divmod(rest, size)
            if count:
                text += f"{count}{unit}"
        return text or "0s"


@dataclass(frozen=True, slots=True, order=True)
class ByteSize:
    """An amount of bytes."""

    count: int

    def __str__(self) -> str:
        exact = [
            f"{self.count // size}{unit}"
            for unit, size in {**_BINARY, **_DECIMAL, "": 1}.items()
            if self.count % size == 0
        ]
        return min(exact, key=len) if self.count else "0"


def parse_duration(text: str) -> Duration:
    """Read `500ms`, `10s`, `1m30s`, `2h`: units from large to small, each once.

    Raises:
        ValueError: the text is not a duration; the message says what is expected.
    """
    match = _DURATION.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or not any(match.groups()):
        raise ValueError("a duration such as 500ms, 10s or 1m30s")
    counts = (int(digits or 0) for digits in match.groups())
    return Duration(
        sum(count * size for count, size in zip(counts, _MILLISECONDS.values(), strict=True))
    )


def parse_bytes(text: str) -> ByteSize:
    """Read `1g`, `512m` (as Spark: powers of 1024), `32Mi` (the same) and `32MB` (of 1000).

    A single capital is refused: `M` is 1000 * 1000 to Kubernetes and 1024 * 1024 to a JVM.

    Raises:
        ValueError: the text is not an amount of bytes; the message says what is expected.
    """
    match = _BYTES.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError("an amount of bytes such as 1g, 512Mi or 32MB")
    digits, unit = match.groups()
    if unit not in BYTES_PER_UNIT:
        capital = unit.upper()
        if capital in {"K", "M", "G", "T"}:
            binary, decimal = f"{capital}i", "kB" if capital == "K" else f"{capital}B"
            raise ValueError(f"{digits}{binary} (1024) or {digits}{decimal} (1000); {unit} is both")
        units = ", ".join(filter(None, BYTES_PER_UNIT))
        raise ValueError(f"an amount of bytes with one of the units {units}")
    return ByteSize(int(digits) * BYTES_PER_UNIT[unit])

"""Findings of a check: why twins cannot run a query, and what to do instead."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a query is refused; stable identifiers for programs, unlike the messages."""

    WALL_CLOCK = "WallClock"
    RANDOMNESS = "Randomness"
    PLACEMENT = "Placement"
    NOT_DETERMINISTIC = "NotDeterministic"
    UNSTABLE_QUERY = "UnstableQuery"
    PROCESSING_TIME = "ProcessingTime"
    OWN_WATERMARK = "OwnWatermark"
    COMPLETE_MODE = "CompleteMode"
    GLOBAL_AGGREGATE = "GlobalAggregate"
    GROUPING_NOT_KEYED = "GroupingNotKeyed"
    JOIN_NOT_KEYED = "JoinNotKeyed"
    CHANGING_TABLE = "ChangingTable"
    FOREIGN_STREAM = "ForeignStream"
    DUPLICATE_COLUMN = "DuplicateColumn"
    RESERVED_COLUMN = "ReservedColumn"
    MISSING_COLUMN = "MissingColumn"
    MISSING_TABLE = "MissingTable"
    MISSING_FUNCTION = "MissingFunction"
    SQL_SYNTAX = "SqlSyntax"
    NOT_A_QUERY = "NotAQuery"
    PYTHON_RAISED = "PythonRaised"
    NOT_A_DATA_FRAME = "NotADataFrame"
    NOT_STREAMING = "NotStreaming"
    UNSUPPORTED = "UnsupportedOperation"
    INVALID_QUERY = "InvalidQuery"
    INVALID_MANIFEST = "InvalidManifest"


class Doubt(StrEnum):
    """Why a query is accepted with a warning."""

    ORDER_DEPENDENT = "OrderDependent"
    FLOATING_POINT = "FloatingPoint"
    LIMIT = "LimitPerPair"
    ROW_CHOICE = "RowChoice"
    OPAQUE_CODE = "OpaqueCode"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in a part of the query, and what to do instead."""

    reason: Reason | Doubt
    message: str
    hint: str

    def document(self) -> dict[str, str]:
        """Write it as plain data."""
        return {"reason": str(self.reason), "message": self.message, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class QueryVerdict:
    """The findings of a check. The fingerprint is empty if no query could be built."""

    refused: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    fingerprint: str = ""

    def document(self) -> dict[str, object]:
        """Write it as plain data."""
        return {
            "refused": [finding.document() for finding in self.refused],
            "warnings": [finding.document() for finding in self.warnings],
            "fingerprint": self.fingerprint,
        }


def list_of(names: tuple[str, ...]) -> str:
    """Return names as a list in prose: `a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last

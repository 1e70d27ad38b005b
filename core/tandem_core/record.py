"""Immutable values with named fields, as they travel and as they lie on volumes.

Encoded, a record is a map of its fields; fields that have their default are left out. So a field
with a default can be added at any time: older readers skip it, newer readers of older bytes take
the default. Types are checked when bytes are read.
"""

from __future__ import annotations

from typing import Any, Self, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _RecordMeta(msgspec.StructMeta):
    """Tells type checkers that records are frozen without every class saying so."""


class Record(msgspec.Struct, metaclass=_RecordMeta, frozen=True, omit_defaults=True):
    """A frozen value: compared and hashed by its fields."""

    def replace(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class Tagged(Record, tag=True):
    """A record that is one of several kinds: its bytes name its class."""

"""The intent as a document: JSON that people can read, and routing functions beside it.

A routing function is stored once, under its digest; generations name it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.records import decode_json

FUNCTION_PREFIX = "function."
"""What the name of a routing function's document begins with; its digest follows."""


def intent_text(intent: Intent) -> str:
    """An intent as indented JSON; fields that have their default are left out."""
    return msgspec.json.format(msgspec.json.encode(intent), indent=2).decode() + "\n"


def read_intent_text(text: str | bytes) -> Intent:
    """Read what `intent_text` wrote, or a later version of it.

    Raises:
        Undecodable: it is something else.
    """
    return decode_json(text, Intent)


def function_key(digest: str) -> str:
    """The name of a routing function's document."""
    return f"{FUNCTION_PREFIX}{digest}"


def functions_among(documents: Mapping[str, bytes]) -> tuple[Function, ...]:
    """The routing functions among documents, by their names."""
    return tuple(
        Function(name.removeprefix(FUNCTION_PREFIX), form)
        for name, form in sorted(documents.items())
        if name.startswith(FUNCTION_PREFIX)
    )

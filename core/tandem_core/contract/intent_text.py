"""The document of the intent: indented JSON, with routing functions stored beside it.

A routing function is stored once, under its digest; generations name it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.records import decode_json

FUNCTION_PREFIX = "function."
"""Prefix of the name of a routing function's document; the digest follows."""


def intent_text(intent: Intent) -> str:
    """Return an intent as indented JSON, without fields at their default."""
    return msgspec.json.format(msgspec.json.encode(intent), indent=2).decode() + "\n"


def read_intent_text(text: str | bytes) -> Intent:
    """Read what `intent_text` wrote, or a later version of it.

    Raises:
        Undecodable: the text is not an intent.
    """
    return decode_json(text, Intent)


def function_key(digest: str) -> str:
    """Return the name of a routing function's document."""
    return f"{FUNCTION_PREFIX}{digest}"


def functions_among(documents: Mapping[str, bytes]) -> tuple[Function, ...]:
    """Return the routing functions among documents, which are recognised by their names."""
    return tuple(
        Function(name.removeprefix(FUNCTION_PREFIX), form)
        for name, form in sorted(documents.items())
        if name.startswith(FUNCTION_PREFIX)
    )

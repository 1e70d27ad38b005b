"""One declaration per rule over several fields: the check, and what of it the API server can tell.

The model's check is exact and names the wrong value. The API server's part is an approximation in
CEL that refuses less: the operator checks again what comes through.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tandem_core.model.fields.problems import Problem

Check = Callable[[Any], Iterator[Problem]]
"""Judges one document. Paths are relative to it. It may find fields unset: see `Unset`."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A rule in CEL, the language of the API server.

    `at` is the place of the rule's `self` below the document, as in `volumes[]`; `blames` is the
    field below `self` that the refusal names.
    """

    expression: str
    message: str
    at: str = ""
    blames: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over one document; without `cel` only the model can judge it."""

    check: Check
    cel: tuple[CelRule, ...] = ()


def rule(*cel: CelRule) -> Callable[[Check], Rule]:
    """Make a rule of a check."""
    return lambda check: Rule(check, cel)

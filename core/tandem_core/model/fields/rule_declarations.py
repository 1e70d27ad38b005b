"""Declares rules over several fields: the model's check, and its part for the API server.

The model's check is exact and names the wrong value. The API server's part approximates it in CEL
and refuses less: the operator checks again what passes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tandem_core.model.fields.problems import Problem

Check = Callable[[Any], Iterator[Problem]]
"""Yields the problems of one document, with relative paths. Fields may be unset: see `Unset`."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A rule in CEL, which the API server evaluates.

    `at` is the path of the rule's `self` below the document, such as `volumes[]`; `blames` is the
    field below `self` that the error names.
    """

    expression: str
    message: str
    at: str = ""
    blames: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over one document; without `cel` only the model checks it."""

    check: Check
    cel: tuple[CelRule, ...] = ()


def rule(*cel: CelRule) -> Callable[[Check], Rule]:
    """Turn a check into a rule."""
    return lambda check: Rule(check, cel)

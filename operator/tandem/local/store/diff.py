"""Finds the differences between two documents."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem_core.model.fields.problems import ABSENT, Path


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; a side on which it is missing has `ABSENT`."""

    path: Path
    before: object
    after: object


def changed_fields(before: object, after: object, at: Path = ()) -> list[Change]:
    """Return all fields that differ, each as deep as both sides have the same shape."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = dict.fromkeys([*before, *after])
        return [
            change
            for name in names
            for change in changed_fields(
                before.get(name, ABSENT), after.get(name, ABSENT), (*at, str(name))
            )
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            change
            for place, (old, new) in enumerate(zip(before, after, strict=True))
            for change in changed_fields(old, new, (*at, place))
        ]
    return [] if before == after else [Change(at, before, after)]

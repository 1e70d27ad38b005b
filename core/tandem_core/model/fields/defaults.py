"""Removes defaults from documents, and reduces documents to their fixed fields."""

from dataclasses import replace
from typing import Any, TypeVar

from tandem_core.model.fields.declarations import Document, OneOf, Setting, settings_of
from tandem_core.model.fields.kinds import ListOf

T = TypeVar("T")


def without_defaults(kind: object, written: Any) -> Any:
    """Remove every field at its default from a written value; reading it gives the same.

    A field that a later version adds is then absent until it is set, so an older version can read
    what a newer one writes, and a digest over it stays the same.
    """
    if isinstance(kind, ListOf):
        return [without_defaults(kind.item, entry) for entry in written]
    if isinstance(kind, OneOf):
        return {name: without_defaults(kind.alternatives[name], written[name]) for name in written}
    if not isinstance(kind, Document):
        return written
    sparse: dict[str, Any] = {}
    for declared in settings_of(kind.cls):
        given = {name: written[name] for name in declared.names if name in written}
        if isinstance(declared.kind, OneOf) and declared.name not in given:
            sparse |= without_defaults(declared.kind, given)
        elif given and not _is_default(declared, given[declared.name]):
            sparse[declared.name] = without_defaults(declared.kind, given[declared.name])
    return sparse


def _is_default(declared: Setting, written: object) -> bool:
    if declared.required or declared.default is None:
        return False
    return bool(written == declared.kind.write(declared.default))


def only_fixed(instance: T) -> T:
    """Reset every field to its default that is not fixed and contains no fixed field."""
    changed: dict[str, Any] = {}
    for declared in settings_of(type(instance)):
        if declared.fixed:
            continue
        if isinstance(declared.kind, Document) and _holds_fixed(declared.kind.cls):
            changed[declared.attribute] = only_fixed(getattr(instance, declared.attribute))
        else:
            changed[declared.attribute] = declared.default
    return replace(instance, **changed)  # type: ignore[type-var]


def _holds_fixed(cls: type[Any]) -> bool:
    return any(
        declared.fixed or (isinstance(declared.kind, Document) and _holds_fixed(declared.kind.cls))
        for declared in settings_of(cls)
    )

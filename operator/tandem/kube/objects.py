"""Reads the metadata that every object has."""

from collections.abc import Iterable, Mapping
from typing import Any

from tandem.kube.kinds import Object


def name_of(document: Object) -> str:
    """Its name."""
    return str(document["metadata"]["name"])


def namespace_of(document: Object) -> str | None:
    """Its namespace, if it has one."""
    found = document["metadata"].get("namespace")
    return None if found is None else str(found)


def uid_of(document: Object) -> str:
    """Its identity: a later object of the same name has another one."""
    return str(document["metadata"]["uid"])


def labels_of(document: Object) -> Mapping[str, str]:
    """Its labels."""
    found: Mapping[str, str] = document["metadata"].get("labels") or {}
    return found


def annotations_of(document: Object) -> Mapping[str, str]:
    """Its annotations."""
    found: Mapping[str, str] = document["metadata"].get("annotations") or {}
    return found


def owners_of(document: Object) -> Iterable[Mapping[str, Any]]:
    """Its owner references."""
    found: Iterable[Mapping[str, Any]] = document["metadata"].get("ownerReferences") or ()
    return found


def is_owned_by(document: Object, uid: str) -> bool:
    """Whether an object is owned by another one."""
    return any(owner["uid"] == uid for owner in owners_of(document))


def is_going(document: Object) -> bool:
    """Whether it has been deleted and exists only until its grace period or finalizers end."""
    return document["metadata"].get("deletionTimestamp") is not None

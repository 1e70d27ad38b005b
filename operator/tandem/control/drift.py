"""Whether an object is still what was applied, although its digest says so."""

from collections.abc import Mapping
from typing import Any

from tandem.kube.kinds import DEPLOYMENT, REPLICA_SET, Object, kind_of

_MAKE_PODS = frozenset({DEPLOYMENT, REPLICA_SET})


def has_drifted(wanted: Object, there: Object) -> bool:
    """Whether somebody has changed what is wanted of an object.

    Of what makes pods only the count is compared. Its template may be an older operator's, in other
    words for the same order, and pods are not to be rolled for that.
    """
    if kind_of(wanted) in _MAKE_PODS:
        return bool(wanted["spec"]["replicas"] != there["spec"].get("replicas"))
    parts = wanted.keys() - {"apiVersion", "kind", "metadata"}
    return not all(_is_in(wanted[part], there.get(part)) for part in parts)


def _is_in(wanted: Any, there: Any) -> bool:
    """Whether all that is wanted is there, whatever the server has added to mappings."""
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        return all(_is_in(value, there.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        return all(map(_is_in, wanted, there))
    return bool(wanted == there)

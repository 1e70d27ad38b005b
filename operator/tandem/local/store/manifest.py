"""The manifest in a pipeline's directory: as it runs now, with a generation that rises.

A few fields may change while the pipeline runs. Each of them follows the user's file when the file
changes, and `tandem scale` in between: the values that the file had last are kept, so that starting
again with the same file changes nothing back.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from tandem.local.store import files
from tandem.local.store.diff import Change, changed_fields
from tandem.local.store.directory import Directory, DirectoryRefused, make
from tandem_core.model.fields.problems import Path as FieldPath
from tandem_core.model.fields.problems import path_text, value_text
from tandem_core.model.pipeline import Pipeline, Refusal, parse_pipeline, pipeline_document

COUNTS: Mapping[str, FieldPath] = {
    "pairs": ("spec", "pairs", "count"),
    "splits": ("spec", "splits", "count"),
    "merges": ("spec", "merges", "count"),
}
"""The sizes of a pipeline, by the names that commands give them."""

_CHANGEABLE = {path_text(path): path for path in (*COUNTS.values(), ("spec", "change"))}

Values = Mapping[str, Any]
"""Changeable fields by their paths as text, such as `spec.pairs.count`."""


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """The content of `pipeline.json`."""

    document: dict[str, Any]
    """The manifest as it runs: defaults filled in, paths absolute."""
    base: str
    """The directory of the user's file."""
    generation: int = 1
    """Rises with each change of the document."""
    applied: Values = field(default_factory=dict)
    """The changeable fields as the user's file last had them."""

    def with_values(self, values: Values) -> Self:
        """Return the manifest with other values of changeable fields."""
        document = deepcopy(self.document)
        for name, value in values.items():
            *parents, last = _CHANGEABLE[name]
            inner = document
            for step in parents:
                inner = inner[str(step)]
            inner[str(last)] = value
        if document == self.document:
            return self
        return replace(self, document=document, generation=self.generation + 1)

    def with_applied(self, values: Values) -> Self:
        """Return the manifest with what the user's file has now."""
        return replace(self, applied={**self.applied, **values})

    def pipeline(self) -> Pipeline:
        """Return the manifest as a pipeline.

        Raises:
            DirectoryRefused: it is not valid; the message names field, value and remedy.
        """
        parsed = parse_pipeline(self.document)
        if isinstance(parsed, Refusal):
            problem = parsed.problems[0]
            said = f"{path_text(problem.path)}: {value_text(problem.value)}"
            raise DirectoryRefused(f"{said}: expected {problem.expected}")
        return parsed


def changeable_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changeable fields of a manifest."""
    found = {}
    for name, path in _CHANGEABLE.items():
        value: Any = document
        for step in path:
            value = value[step]
        found[name] = value
    return found


def prepare(directory: Directory, pipeline: Pipeline, base: Path) -> bool:
    """Prepare the directory for a pipeline whose paths are absolute; true if it is new.

    Only changeable fields may differ from an existing directory's manifest: state, lanes and sinks
    belong to the others. `base` is the directory of the manifest.

    Raises:
        DirectoryRefused: it belongs to another manifest, or holds other files.
    """
    document = pipeline_document(pipeline)
    if not directory.pipeline.exists():
        make(directory)
        # Last: this file marks the directory as complete.
        write_manifest(
            directory, StoredManifest(document, str(base), applied=changeable_values(document))
        )
        return True
    known = read_manifest(directory)
    refuse_other_changes(directory, known, document)
    values = changeable_values(document)
    asked = {name: value for name, value in values.items() if value != known.applied[name]}
    changed = known.with_values(asked).with_applied(values)
    if changed != known:
        write_manifest(directory, changed)
    return False


def refuse_other_changes(
    directory: Directory, known: StoredManifest, document: dict[str, object]
) -> None:
    """Refuse a manifest that differs in a field that cannot change.

    Raises:
        DirectoryRefused: the message names all such fields.
    """
    listed = "\n".join(
        f"  {path_text(each.path)}: was {value_text(each.before)}, is {value_text(each.after)}"
        for each in fixed_changes(known.document, document)
    )
    if listed:
        raise DirectoryRefused(
            f"{directory.path} belongs to another manifest:\n{listed}\n"
            "Restore the old manifest, or run the new one in another directory (--dir) with new "
            f"paths for its sinks; remove {directory.path} and the sinks' files to start over."
        )


def fixed_changes(known: Mapping[str, Any], document: Mapping[str, Any]) -> list[Change]:
    """Return the fields that differ and cannot change while the pipeline exists."""
    changes = changed_fields(known, document)
    return [change for change in changes if not is_changeable(change.path)]


def is_changeable(path: FieldPath) -> bool:
    """Whether a field, or the one that it is a part of, may change while the pipeline runs."""
    return any(path[: len(known)] == known for known in _CHANGEABLE.values())


def read_manifest(directory: Directory) -> StoredManifest:
    """Read the manifest of a directory.

    Raises:
        DirectoryRefused: it cannot be read.
    """
    try:
        content: Any = json.loads(directory.pipeline.read_text())
        document = _with_later_fields(content["manifest"])
        # An older version wrote neither generation nor the file's values.
        return StoredManifest(
            document,
            content["base"],
            content.get("generation", 1),
            {**changeable_values(document), **content.get("applied", {})},
        )
    except (ValueError, KeyError, TypeError):
        raise DirectoryRefused(
            f"{directory.pipeline} cannot be read; remove {directory.path} to start over"
        ) from None


def _with_later_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with fields that were added since it was written, at their defaults."""
    parsed = parse_pipeline(document)
    return document if isinstance(parsed, Refusal) else pipeline_document(parsed)


def write_manifest(directory: Directory, stored: StoredManifest) -> None:
    """Replace the manifest of a directory."""
    content = {
        "manifest": stored.document,
        "base": stored.base,
        "generation": stored.generation,
        "applied": dict(stored.applied),
    }
    files.write(directory.pipeline, json.dumps(content, indent=1).encode())

"""Generates the reference of a pipeline's fields from their declarations: `make reference`."""

import inspect
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tandem_core.model import states
from tandem_core.model.fields.declarations import Document, OneOf, Setting, settings_of
from tandem_core.model.fields.kinds import Choice, Kind, ListOf
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.status import Status

_HEAD = """\
# Reference of `StreamPipeline`

Made by `make reference` from the declarations in `core/tandem_core/model`; edit those.
Fields without a default must be given. Examples stand in `examples/`.
"""
_COLUMNS = "| field | value | default | meaning |\n|---|---|---|---|\n"


def reference() -> str:
    """The page in Markdown."""
    sections = [
        _HEAD,
        "## The resource\n",
        *_documents("", Pipeline, {}),
        "## Status\n",
        *_documents("status", Status, {}),
        "## Words\n",
        *_words(),
    ]
    return "\n".join(sections)


def _documents(path: str, cls: type[Any], shown: dict[type[Any], str]) -> Iterator[str]:
    """A table for each document, nested documents after their parent, each once."""
    if cls in shown:
        yield f"### `{path}`\n\nAs `{shown[cls]}`.\n"
        return
    shown[cls] = path
    settings = settings_of(cls)
    title = f"### `{path}`\n\n" if path else ""
    rows = "".join(row for setting in settings for row in _rows(setting))
    table = f"\n{_COLUMNS}{rows}" if settings else "\nIt has no settings: write `{}`.\n"
    yield f"{title}{inspect.getdoc(cls)}\n{table}"
    for setting in settings:
        for name, kind in _parts(setting):
            yield from _inner(f"{path}.{name}" if path else name, kind, shown)


def _inner(path: str, kind: object, shown: dict[type[Any], str]) -> Iterator[str]:
    if isinstance(kind, ListOf):
        yield from _inner(f"{path}[]", kind.item, shown)
    elif isinstance(kind, Document):
        yield from _documents(path, kind.cls, shown)
    elif isinstance(kind, OneOf):
        yield f"### `{path}`\n\nExactly one of {_listed(kind.alternatives)}.\n"
        for name, alternative in kind.alternatives.items():
            yield from _inner(f"{path}.{name}", alternative, shown)


def _parts(setting: Setting) -> Iterator[tuple[str, object]]:
    """The names of a setting in the manifest, and the type of each."""
    if len(setting.names) > 1 and isinstance(setting.kind, OneOf):
        yield from setting.kind.alternatives.items()
    else:
        yield setting.name, setting.kind


def _rows(setting: Setting) -> Iterator[str]:
    for name, kind in _parts(setting):
        others = [f"`{other}`" for other in setting.names if other != name]
        doc = f"{setting.doc} Exactly one of this, {', '.join(others)}." if others else setting.doc
        yield f"| `{name}` | {_value(kind)} | {_default(setting)} | {doc} |\n"


def _value(kind: object) -> str:
    if isinstance(kind, ListOf):
        inner = _value(kind.item)
        return f"list{kind.count}, each {'a ' if inner.startswith('mapping') else ''}{inner}"
    if isinstance(kind, Document):
        return "mapping, below"
    if isinstance(kind, OneOf):
        return f"exactly one of {_listed(kind.alternatives)}"
    if isinstance(kind, Choice):
        return " or ".join(f"`{member.value}`" for member in kind.members)
    return kind.expected if isinstance(kind, Kind) else "text"


def _default(setting: Setting) -> str:
    if setting.required:
        return ""
    if setting.default is None:
        return "unset"
    if isinstance(setting.kind, Document):
        return "as below"
    written = setting.kind.write(setting.default)
    return f"`{written if isinstance(written, str) else json.dumps(written)}`"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _words() -> Iterator[str]:
    enumerations = [
        member
        for _, member in inspect.getmembers(states, inspect.isclass)
        if issubclass(member, states.Word) and member is not states.Word
    ]
    for enumeration in enumerations:
        rows = "".join(f"| `{word.value}` | {word.meaning} |\n" for word in enumeration)
        head = f"### {enumeration.__name__}\n\n{inspect.getdoc(enumeration)}\n"
        yield f"{head}\n| word | meaning |\n|---|---|\n{rows}"


if __name__ == "__main__":
    sys.stdout.write(reference())

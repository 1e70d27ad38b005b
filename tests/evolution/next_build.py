"""The build "next": a copy of the packages with what a next release may bring.

Its newest format is 2. Several records have one more field each, which it fills. In format 2 there
is one more kind of log entry, `Noted`, which its lead writes now and then. A part of the source
that is not where it is looked for ends the copying.
"""

from __future__ import annotations

import ast
import importlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

from tandem_runtime.protocol.lead import epoch_rules, lead, trim_rules, views
from tandem_runtime.protocol.log.entries import Completed, Trimmed
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.merge import merge_machine
from tandem_runtime.protocol.messages.peers import (
    MergeReport,
    ReplicaReport,
    SplitReport,
    SplitView,
)
from tandem_runtime.protocol.replica import self_report
from tandem_runtime.protocol.split import split_machine
from tandem_runtime.protocol.types import Header

PACKAGES = ("tandem_core", "tandem_runtime")
NEXT_FORMAT = 2
NEW_KIND = "Noted"
NEW_HEADER_FIELD = "cut_by"
_NOTED = '''

class Noted(Tagged):
    """Something that a later version remembers."""

    epoch: int
    text: str


Entry = Entry | Noted
'''
_FOLD_NOTED = """

def _noted(log_state: LogState, entry: Any) -> None:
    assert log_state.format >= 2, "written before everybody could read it"
    log_state.notes = dict([*log_state.notes.items(), (entry.epoch, entry.text)][-4:])


from typing import Any  # noqa: E402

from @records@ import Noted  # noqa: E402

_APPLY[Noted] = _noted
"""
_WRITE_NOTED = """

def _notes(log_state: LogState, _reports: PeerReports, _now: int) -> Iterator[Entry]:
    epoch = log_state.epoch
    if log_state.format >= 2 and epoch % 4 == 0 and epoch not in log_state.notes:
        yield Noted(epoch, "next")


from @records@ import Noted  # noqa: E402

_RECORDS = (*_RECORDS, _notes)
"""

Edit = Callable[[str], str]
ModuleEdit = tuple[str, Edit]
"""The name of a module, and what is done to its source."""


def replaced(old: str, new: str, times: int = 1) -> Edit:
    """An edit that replaces what stands in a source exactly so often."""

    def edit(source: str) -> str:
        assert source.count(old) == times, f"{old!r} is there {source.count(old)} times"
        return source.replace(old, new)

    return edit


def appended(text: str) -> Edit:
    """An edit that adds something at the end."""
    return lambda source: source + text


def with_field(record: type, field: str) -> Edit:
    """An edit that adds a field after the last one of a record."""

    def edit(source: str) -> str:
        classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
        (found,) = (node for node in classes if node.name == record.__name__)
        fields = [n for n, part in enumerate(found.body) if isinstance(part, ast.AnnAssign)]
        last = found.body[fields[-1]]
        after = found.body[fields[-1] + 1 :]
        if after and isinstance(after[0], ast.Expr):  # the field's docstring
            last = after[0]
        lines = source.splitlines(keepends=True)
        lines.insert(last.end_lineno or 0, f"    {field}\n")
        return "".join(lines)

    return edit


def _edits() -> list[ModuleEdit]:
    """In their order."""
    records = Completed.__module__
    fields = [
        (Header, f'{NEW_HEADER_FIELD}: str = ""'),
        (Trimmed, 'why: str = ""'),
        (LogState, "notes: dict[int, str] = {}"),
        (SplitView, 'hint: str = ""'),
        (SplitReport, 'build: str = ""'),
        (ReplicaReport, 'build: str = ""'),
        (MergeReport, 'build: str = ""'),
    ]
    reported = replaced("format=NEWEST_FORMAT,", 'format=NEWEST_FORMAT, build="next",')
    return [
        *((record.__module__, with_field(record, field)) for record, field in fields),
        (records, replaced("NEWEST_FORMAT = 1\n", f"NEWEST_FORMAT = {NEXT_FORMAT}\n")),
        (records, appended(_NOTED)),
        (LogState.__module__, appended(_FOLD_NOTED.replace("@records@", records))),
        (_of(lead), appended(_WRITE_NOTED.replace("@records@", records))),
        (_of(epoch_rules), replaced("Header(\n", f'Header(\n        {NEW_HEADER_FIELD}="next",\n')),
        (_of(trim_rules), replaced("Trimmed(point)", 'Trimmed(point, why="next")')),
        (
            _of(views),
            replaced("return SplitView(\n", 'return SplitView(\n    hint="next",\n'),
        ),
        (_of(split_machine), reported),
        (_of(self_report), reported),
        (_of(merge_machine), reported),
    ]


def _of(module: ModuleType) -> str:
    return module.__name__


def build_next(root: Path, more: Iterable[ModuleEdit] = ()) -> None:
    """Put the build below a directory, which must not exist; more edits come after its own."""
    for name in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__", "jars")
        shutil.copytree(_root_of(name) / name, root / name, ignore=ignore)
    for module, edit in (*_edits(), *more):
        path = root.joinpath(*module.split(".")).with_suffix(".py")
        path.write_text(edit(path.read_text()))


def environment_of(*roots: Path) -> dict[str, str]:
    """The environment of a process of the build below some directories; none: of this build."""
    path = [*roots, *(_root_of(name) for name in PACKAGES)]
    before = filter(None, [os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *before])}


def _root_of(package: str) -> Path:
    return Path(str(importlib.import_module(package).__file__)).parents[1]

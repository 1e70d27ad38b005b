"""Finds the directory of a pipeline and the process of a target, and signals it."""

import contextlib
import os
from pathlib import Path

from tandem.local.processes.children import is_marked, mark_of
from tandem.local.processes.process_record import ProcessRecord, from_json
from tandem.local.store.directory import Directory, read_status
from tandem.output.member_table import LEAD, Missing, no_such_member
from tandem_core.model.states import Role
from tandem_core.model.status import Status

HOME = Path(".tandem")
"""The default parent of pipeline directories, each named after its pipeline."""


def directory_of(name: str | None, directory: str | None, home: Path = HOME) -> Directory:
    """Return the directory that was named, or the only one that exists.

    Raises:
        Missing: there is none, or there are several.
    """
    if directory is not None:
        return _existing(Path(directory))
    if name is not None:
        return _existing(home / name)
    known = sorted(path.parent for path in home.glob("*/pipeline.json"))
    if len(known) == 1:
        return Directory(known[0])
    if not known:
        raise Missing(f"no pipeline in {home}; name its directory with --dir")
    names = ", ".join(path.name for path in known)
    raise Missing(f"several pipelines in {home}: {names}; name one of them")


def _existing(path: Path) -> Directory:
    if Directory(path).pipeline.exists():
        return Directory(path)
    raise Missing(f"no pipeline in {path}")


def signal_member(directory: Directory, target: str, number: int) -> tuple[str, int]:
    """Send a signal to a member's whole process group; return its name and pid.

    Raises:
        Missing: there is no such member, or it does not run at the moment.
    """
    roll = _roll(directory)
    name = name_of(target, read_status(directory) or Status(), roll)
    pid = roll.entry(name).pid
    # The record may be stale and its pid reused by another process.
    if pid is None or not is_marked(pid, mark_of(directory.uid(), directory.path)):
        raise Missing(f"{name} is not running")
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
    return name, pid


def name_of(target: str, status: Status, roll: ProcessRecord) -> str:
    """Resolve a target to a member: a name, `PAIR/primary`, `PAIR/secondary` or `lead`.

    Raises:
        Missing: there is no such member.
    """
    pair_name, slash, role = target.partition("/")
    if target == LEAD:
        found = roll.lead
    elif slash:
        pair = next((pair for pair in status.pairs if pair.name == pair_name), None)
        roles = {Role.PRIMARY: pair.primary, Role.SECONDARY: pair.secondary} if pair else {}
        found = roles.get(Role(role)) if role in set(Role) else None
    else:
        found = target if target in roll.entries else None
    if found is None:
        pairs = [f"{pair.name}/{role}" for pair in status.pairs for role in Role]
        raise no_such_member(target, [LEAD, *pairs, *roll.entries])
    return found


def _roll(directory: Directory) -> ProcessRecord:
    try:
        return from_json(directory.members.read_text())
    except (OSError, ValueError):
        raise Missing(f"no pipeline has run in {directory.path} yet") from None

"""Checks with Spark, before any member starts, whether twins can run the query."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.local.processes.children import dying_with_us
from tandem.local.store import files
from tandem.local.store.directory import Directory
from tandem.policy.snapshot import Complaint
from tandem_core.contract.exit_codes import REFUSED
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import PythonQuery

CheckCommand = Callable[[Path], list[str]]
"""The command that checks the query of a pipeline's directory."""

_PATIENCE = 300.0
_SHOWN_LINES = 15


class CheckFailed(Exception):
    """The query could not be checked at all; the message has the program's output."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of the check of a query."""

    refused: tuple[Complaint, ...] = ()
    warnings: tuple[Complaint, ...] = ()


def check_command(directory: Path) -> list[str]:
    """Return the command line of the check."""
    return [sys.executable, "-m", "tandem_runtime.spark.checks.check", str(directory)]


def check_query(directory: Directory, pipeline: Pipeline, command: CheckCommand) -> Findings:
    """Check the query unless its file was checked before and has not changed since.

    The plan of an accepted query is recorded. A query whose plan differs from the recorded one is
    refused: the state in the directory belongs to the other plan.

    Raises:
        CheckFailed: the check gave no answer.
    """
    known = _remembered(directory)
    digest = _file_digest(pipeline)
    if known is not None and known.get("file") == digest:
        return Findings()
    answer = _ask(command(directory.path))
    findings = Findings(_complaints(answer, "refused"), _complaints(answer, "warnings"))
    if findings.refused:
        return findings
    if known is not None and known.get("fingerprint") != answer.get("fingerprint"):
        return Findings(refused=(_changed(directory),))
    kept = {"fingerprint": answer.get("fingerprint"), "file": digest, **answer}
    files.write(directory.check, json.dumps(kept, indent=1).encode())
    return findings


def _remembered(directory: Directory) -> dict[str, Any] | None:
    try:
        known = json.loads(directory.check.read_text())
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) else None


def _file_digest(pipeline: Pipeline) -> str | None:
    """Return the digest of the query's file; None for a query inside the manifest."""
    program = pipeline.spec.query.program
    if not isinstance(program, PythonQuery):
        return None
    return hashlib.sha256(Path(program.file).read_bytes()).hexdigest()


def _ask(command: list[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            dying_with_us(command),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"the query could not be checked within {_PATIENCE:.0f} s") from None
    try:
        answer = json.loads(done.stdout) if done.returncode in {0, REFUSED} else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_SHOWN_LINES:])
        raise CheckFailed(f"the query could not be checked (exit code {done.returncode}):\n{said}")
    return answer


def _complaints(answer: dict[str, Any], name: str) -> tuple[Complaint, ...]:
    return tuple(
        Complaint(str(each.get("reason")), str(each.get("message")), str(each.get("hint") or ""))
        for each in answer.get(name) or ()
        if isinstance(each, dict)
    )


def _changed(directory: Directory) -> Complaint:
    return Complaint(
        "QueryChanged",
        f"the query differs from the one that {directory.path} was created for",
        "restore the file, or run the new query in another directory (--dir) with new paths for "
        "its sinks",
    )

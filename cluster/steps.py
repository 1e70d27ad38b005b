"""Runs commands, and reports progress while they take long."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_SIGN_OF_LIFE = 20.0
_TAIL = 15
_WIDTH = 90


class StepFailed(Exception):
    """A command failed, or something that it needs is missing; the message says what to do."""


def say(text: str) -> None:
    """Write to the error stream; the standard output is for a command's result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def step(
    title: str,
    command: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: IO[bytes] | None = None,
) -> None:
    """Run a command that may take long; hide its output unless it fails.

    The elements of a command may be paths or other objects with a text form. Every twenty seconds
    the last line of the output is shown.

    Raises:
        StepFailed: the command failed; the message has the end of its output.
    """
    say(f"{title} …")
    begun = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603 - commands are made in this package
            list(map(str, command)),
            stdin=stdin or subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        while not _ended(process):
            say(f"  {time.monotonic() - begun:4.0f} s  {_last_line(log)}")
        if process.returncode != 0:
            raise StepFailed(f"{title}: failed\n{_tail(log, _TAIL)}")
    say(f"{title}: {time.monotonic() - begun:.0f} s")


def ask(
    command: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: str | None = None,
) -> str:
    """Run a short command and return its output, stripped.

    Raises:
        StepFailed: it failed; the message has its error output.
    """
    done = _run(command, env, cwd, text)
    if done.returncode != 0:
        raise StepFailed(f"{' '.join(map(str, command[:4]))}: {done.stderr.strip()}")
    return done.stdout.strip()


def works(command: Sequence[object], *, env: Mapping[str, str] | None = None) -> bool:
    """Whether a short command succeeds; False also if it cannot be started."""
    try:
        return _run(command, env, None, None).returncode == 0
    except OSError:
        return False


def _run(
    command: Sequence[object],
    env: Mapping[str, str] | None,
    cwd: Path | None,
    text: str | None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - commands are made in this package
        list(map(str, command)),
        env={**os.environ, **(env or {})},
        cwd=cwd,
        input=text or "",
        capture_output=True,
        text=True,
        check=False,
    )


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_SIGN_OF_LIFE)
    except subprocess.TimeoutExpired:
        return False
    return True


def _last_line(log: IO[bytes]) -> str:
    return _tail(log, 1)[:_WIDTH]


def _tail(log: IO[bytes], lines: int) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - 8192))
    text = log.read().decode(errors="replace")
    log.seek(0, os.SEEK_END)
    return "\n".join(text.strip().splitlines()[-lines:])

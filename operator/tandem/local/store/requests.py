"""Requests of commands to the supervisor: files, which also wait for the next start.

A command writes a request under a name that sorts by time. The supervisor answers beside it, at
once, and removes it when it is done: a change of fields with the answer, a change of keys when the
intent has it. Both files appear in one step.
"""

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tandem.local.store import files
from tandem.local.store.directory import Directory
from tandem_core.contract.intent import KeyMove
from tandem_core.contract.records import Record, Undecodable, decode_json

_REQUEST, _ANSWER = ".json", ".answer"
_ANSWERS_KEPT = 20
"""How many answers are kept for commands that have yet to read theirs."""


class DirectoryRequest(Record):
    """What a command asks of a pipeline."""

    id: str
    values: dict[str, Any]
    """New values of changeable fields, by their paths; none for a change of keys."""
    from_file: bool = False
    """Whether these are the values of the user's file."""
    moves: tuple[KeyMove, ...] = ()


class RequestAnswer(Record):
    """What the supervisor says to a request."""

    generation: int = 0
    """The generation of the manifest that has the change."""
    refused: str = ""


def send_request(
    directory: Directory,
    values: Mapping[str, Any] | None = None,
    moves: tuple[KeyMove, ...] = (),
    *,
    from_file: bool = False,
) -> str:
    """Write a request; return its id."""
    directory.requests.mkdir(exist_ok=True)
    name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    request = DirectoryRequest(name, dict(values or {}), from_file, moves)
    files.write(directory.requests / f"{name}{_REQUEST}", msgspec.json.encode(request))
    return name


def read_answer(directory: Directory, name: str) -> RequestAnswer | None:
    """Return the answer to a request; None if there is none yet."""
    try:
        return decode_json((directory.requests / f"{name}{_ANSWER}").read_bytes(), RequestAnswer)
    except (FileNotFoundError, Undecodable):
        return None


def forget_answer(directory: Directory, name: str) -> None:
    """Remove an answer that has been read."""
    (directory.requests / f"{name}{_ANSWER}").unlink(missing_ok=True)


def is_pending(directory: Directory, name: str) -> bool:
    """Whether a request is not done yet."""
    return (directory.requests / f"{name}{_REQUEST}").exists()


def pending_requests(directory: Directory) -> list[DirectoryRequest]:
    """Return all requests that are not done, the oldest first; unreadable ones are removed."""
    found = []
    for path in sorted(directory.requests.glob(f"*{_REQUEST}")):
        if path.name.startswith("."):
            continue
        try:
            found.append(decode_json(path.read_bytes(), DirectoryRequest))
        except FileNotFoundError:
            continue
        except Undecodable as problem:
            _answer(path, RequestAnswer(refused=f"{path.name} is not a request: {problem}"))
            path.unlink(missing_ok=True)
    return found


def answer(directory: Directory, request: DirectoryRequest, said: RequestAnswer) -> None:
    """Answer a request."""
    _answer(directory.requests / f"{request.id}{_REQUEST}", said)


def finish(directory: Directory, request: DirectoryRequest) -> None:
    """Remove a request that is done."""
    (directory.requests / f"{request.id}{_REQUEST}").unlink(missing_ok=True)


def _answer(path: Path, said: RequestAnswer) -> None:
    files.write(path.with_suffix(_ANSWER), msgspec.json.encode(said))
    answers = sorted(path.parent.glob(f"[!.]*{_ANSWER}"))
    for old in answers[:-_ANSWERS_KEPT]:
        old.unlink(missing_ok=True)

"""The file of the intent of a pipeline on one machine."""

from collections.abc import Collection
from pathlib import Path

from tandem.local.store import files
from tandem.local.store.directory import DirectoryRefused
from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.intent_text import (
    FUNCTION_PREFIX,
    function_key,
    intent_text,
    read_intent_text,
)
from tandem_core.routing.errors import CorruptFunctionError
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import from_bytes


def read_intent(path: Path) -> Intent | None:
    """Read the intent; None if there is no file.

    Raises:
        DirectoryRefused: the file is not an intent.
    """
    try:
        return read_intent_text(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as problem:
        raise DirectoryRefused(f"{path} cannot be read: {problem}") from problem


def write_intent(path: Path, intent: Intent) -> None:
    """Replace the intent; the routing functions that it names must be written before."""
    files.write(path, intent_text(intent).encode())


def write_functions(directory: Path, functions: tuple[Function, ...]) -> None:
    """Put routing functions beside the intent, each under its digest."""
    for function in functions:
        files.write(directory / function_key(function.digest), function.form)


def remove_other_functions(directory: Path, named: Collection[str]) -> None:
    """Remove the routing functions that the intent no longer names."""
    kept = {function_key(digest) for digest in named}
    for path in directory.glob(f"{FUNCTION_PREFIX}*"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def read_function(directory: Path, digest: str) -> RoutingFunction:
    """Read the routing function of a digest, which is stored beside the intent.

    Raises:
        DirectoryRefused: it is missing or damaged.
    """
    path = directory / function_key(digest)
    try:
        return from_bytes(path.read_bytes())
    except (OSError, CorruptFunctionError) as problem:
        raise DirectoryRefused(f"{path} cannot be read: {problem}") from problem

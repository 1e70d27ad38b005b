"""Where the intent of a pipeline on one machine stands."""

from pathlib import Path

from tandem.local import files
from tandem.local.directory import DirectoryRefused
from tandem_runtime.protocol.data import Intent
from tandem_runtime.wire.codec import decode, encode


def read_intent(path: Path) -> Intent | None:
    """The intent that stands there; None if there is none.

    Raises:
        DirectoryRefused: the file is something else.
    """
    try:
        found = decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as problem:
        raise DirectoryRefused(f"{path} cannot be read: {problem}") from problem
    if not isinstance(found, Intent):
        raise DirectoryRefused(f"{path} is not an intent")
    return found


def write_intent(path: Path, intent: Intent) -> None:
    """Put an intent in the place of the older one."""
    files.write(path, encode(intent))

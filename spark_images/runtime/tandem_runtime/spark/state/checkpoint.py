"""Claims, copies, verifies and replaces checkpoints.

Files of a checkpoint appear complete, by renaming, and never change afterwards, so a copy consists
of hard links and the query need not pause. If Spark removes old files meanwhile, the copy is
retried.
"""

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from tandem_runtime.spark.state.offsets import committed_batches
from tandem_runtime.spark.state.state_files import can_restore, needed, stores, versioned

_ATTEMPTS = 5
_FINGERPRINT = "fingerprint"
_SCHEMA_PLACE = re.compile(r'file:/[^"]*/state/(\d+/_stateSchema/)')


OTHER_QUERY = (
    "restore the query that wrote the state, or start a new pipeline with this one (with "
    "`tandem run`: another --dir)"
)
"""What to do where another query made the state."""


class FingerprintMismatch(Exception):
    """Another query made the state in a checkpoint."""

    def __init__(self) -> None:
        super().__init__(
            "the query has changed since its state was made; Spark would take the old state for "
            "something else, a sum for a maximum"
        )
        self.hint = OTHER_QUERY


class IncompleteCheckpoint(Exception):
    """A checkpoint lacks files that are needed to continue after an epoch."""


def claim(checkpoint: Path, fingerprint: str) -> None:
    """Store the query's fingerprint in a checkpoint, or compare it with the stored one.

    Raises:
        FingerprintMismatch: the stored one differs.
    """
    file = checkpoint / _FINGERPRINT
    if not file.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{_FINGERPRINT}")
        fresh.write_text(fingerprint, encoding="utf-8")
        fresh.replace(file)
    elif file.read_text(encoding="utf-8") != fingerprint:
        raise FingerprintMismatch


def settle(checkpoint: Path) -> None:
    """Make a copied checkpoint refer to its own files.

    For state of arbitrary shape Spark stores the full paths of schemas.
    """
    own = f"file:{checkpoint.resolve()}/state/"
    for file in checkpoint.glob("state/*/_metadata/v2/[0-9]*"):
        before = file.read_text(encoding="utf-8")
        after = _SCHEMA_PLACE.sub(lambda found: f"{own}{found[1]}", before)
        if after != before:
            # The file may be a hard link to the other checkpoint's, so it is replaced.
            fresh = file.with_name(f".{file.name}.fresh")
            fresh.write_text(after, encoding="utf-8")
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            fresh.replace(file)


def committed_epochs(checkpoint: Path) -> list[int]:
    """Return the committed epochs of a checkpoint, in order; old ones may be removed."""
    return sorted(committed_batches(checkpoint))


def copyable_epochs(checkpoint: Path) -> list[int]:
    """Return the epochs from which a copy of a checkpoint may begin: with the batch before them."""
    batches = committed_batches(checkpoint)
    known = {-1, *batches.values()}
    return sorted(epoch for epoch, batch in batches.items() if batch - 1 in known)


def link_tree(checkpoint: Path, oldest: int, newest: int, target: Path) -> None:
    """Copy a checkpoint to `target`: it ends at `newest` and can restore epochs since `oldest`.

    The copy has nothing newer, and a query id of its own. Both epochs must be committed, and
    `target`, on the same file system, must not exist.

    Raises:
        IncompleteCheckpoint: a file that is needed has been removed.
    """
    for _ in range(_ATTEMPTS):
        try:
            _link(checkpoint, oldest, newest, target)
            verify(target, newest)
        except (FileNotFoundError, IncompleteCheckpoint) as error:
            shutil.rmtree(target, ignore_errors=True)
            reason = error
        else:
            return
    raise IncompleteCheckpoint(f"epochs {oldest} to {newest}: {reason}") from reason


def replace_tree(checkpoint: Path, move: Callable[[Path], object]) -> None:
    """Replace a checkpoint by another tree, which `move` puts in its place.

    If the process ends at any moment, one of the two remains complete; `restore` finds it.
    """
    former = _former(checkpoint)
    shutil.rmtree(former, ignore_errors=True)
    if checkpoint.exists():
        checkpoint.replace(former)
    move(checkpoint)
    shutil.rmtree(former, ignore_errors=True)


def restore(checkpoint: Path) -> None:
    """Undo a replacement that an ended process did not complete."""
    former = _former(checkpoint)
    if former.exists() and not checkpoint.exists():
        former.replace(checkpoint)
    shutil.rmtree(former, ignore_errors=True)


def _former(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.former")


def verify(tree: Path, epoch: int) -> None:
    """Check that a query can continue in this checkpoint after an epoch, its last one.

    Raises:
        IncompleteCheckpoint: a file is missing; the message names it.
    """
    batches = committed_batches(tree)
    if not batches or max(batches) != epoch:
        raise IncompleteCheckpoint(f"the last committed epoch is {max(batches, default=None)}")
    batch = batches[epoch]
    # Spark also reads the batch before the last one.
    if batch > 0 and batch - 1 not in batches.values():
        raise IncompleteCheckpoint(f"batch {batch - 1}, before the last one, is missing")
    if not (tree / "metadata").exists():
        raise IncompleteCheckpoint("the id of the query is missing")
    try:
        directories = stores(tree)
    except FileNotFoundError as error:
        raise IncompleteCheckpoint(f"{error.filename} is missing") from error
    for directory in directories:
        names = [file.name for file in directory.iterdir()] if directory.exists() else []
        if not can_restore(versioned(names), batch + 1):
            place = directory.relative_to(tree)
            raise IncompleteCheckpoint(f"{place} cannot be restored at version {batch + 1}")


def _link(checkpoint: Path, oldest: int, newest: int, target: Path) -> None:
    batches = committed_batches(checkpoint)
    if oldest not in batches or newest not in batches:
        raise IncompleteCheckpoint("not both epochs are committed and still there")
    first, last = batches[oldest], batches[newest]
    target.mkdir(parents=True)
    for file in _state_files(checkpoint, first + 1, last + 1):
        _link_file(file, target / file.relative_to(checkpoint))
    for log in ("offsets", "commits"):
        for batch in range(max(first - 1, 0), last + 1):
            _link_file(checkpoint / log / str(batch), target / log / str(batch))
    for file in checkpoint.iterdir():
        if file.is_file() and not file.name.startswith(".") and file.name != "metadata":
            _link_file(file, target / file.name)
    (target / "metadata").write_text(f'{{"id":"{uuid.uuid4()}"}}', encoding="utf-8")


def _state_files(checkpoint: Path, oldest: int, newest: int) -> Iterator[Path]:
    """Yield the files for versions `oldest` to `newest`; batch n makes version n + 1."""
    for directory, _, names in os.walk(checkpoint / "state"):
        files = versioned(names)
        lasting = {name for name in names if not name.startswith(".")}
        lasting -= {file.name for file in files}
        if Path(directory).parts[-2:] == ("_metadata", "v2"):
            lasting = {name for name in lasting if int(name) < newest}
        for name in (*lasting, *(file.name for file in needed(files, oldest, newest))):
            yield Path(directory, name)


def _link_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target)
    checksum = source.with_name(f".{source.name}.crc")
    try:
        os.link(checksum, target.with_name(checksum.name))
    except FileNotFoundError:
        # The checksum is written after its file; Spark reads a file without one too.
        return

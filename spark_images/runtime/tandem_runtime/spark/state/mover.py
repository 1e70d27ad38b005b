"""Makes a checkpoint from the state of one or several others, by key.

The others are only read, through Spark's own state stores, while their queries may run. The target
appears complete, by renaming, or not at all: first the rows read from its files must be those that
were kept, which is compared by number and by a hash that ignores their order.
"""

import base64
import json
import shutil
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tandem_core.routing.function import OwnedKeys
from tandem_core.routing.xxh64 import U64Array
from tandem_runtime.spark.checks.key_places import KeyPlace
from tandem_runtime.spark.state.checkpoint import verify
from tandem_runtime.spark.state.offsets import committed_batches
from tandem_runtime.spark.state.target_tree import (
    BatchProgress,
    OperatorInfo,
    belongs,
    read_operator,
    read_partitions,
    read_progress,
    rewritten,
)


@dataclass(frozen=True, slots=True)
class Parent:
    """A checkpoint whose state is moved, and the keys that it owns."""

    checkpoint: Path
    share: OwnedKeys


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """A checkpoint to make, which must not exist."""

    checkpoint: Path
    share: OwnedKeys
    partitions: int
    """The number of its state partitions, which may differ from the parents'."""


@dataclass(frozen=True, slots=True)
class MovedStore:
    """What was moved of a store."""

    operator: int
    store: str
    read: int
    kept: int
    hash: int
    """The sum of the hashes of the kept rows, modulo 2^64."""


class CannotMove(Exception):
    """The state cannot be moved; the target does not exist."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A parent at the epoch."""

    parent: Parent
    batch: int
    progress: BatchProgress
    fingerprint: str
    operators: tuple[OperatorInfo, ...]


def move_state(
    session: SparkSession,
    parents: Sequence[Parent],
    epoch: int,
    target: MoveTarget,
    places: Iterable[KeyPlace],
) -> list[MovedStore]:
    """Make the target from the state after an epoch. Blocks as long as all state takes to read.

    Args:
        session: a session, whose query is not disturbed.
        parents: checkpoints of the same query with different keys. The target continues the
            batches of the first one.
        epoch: committed in all parents.
        target: the checkpoint to make.
        places: the key's place in the state of each of the query's operators.

    Raises:
        CannotMove: the parents do not fit together, or a row is not where it belongs.
        UnsupportedCheckpoint: the state is in a form that cannot be moved.
        FileExistsError: the target exists.
    """
    if target.checkpoint.exists():
        raise FileExistsError(target.checkpoint)
    sources = [_source(parent, epoch) for parent in parents]
    _require_alike(sources)
    stores = _stores(sources[0].operators, places)
    building = target.checkpoint.with_name(f".{target.checkpoint.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        _seed(sources[0], building, target.partitions)
        request = _request(sources, building, target, stores)
        moved = _compared(_call(session, request))
        verify(building, epoch)
        building.replace(target.checkpoint)
    except FileNotFoundError as error:
        raise CannotMove(f"{error.filename} was removed meanwhile") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return moved


def partitions_after(checkpoint: Path, epoch: int) -> int:
    """Return the number of state partitions with which a checkpoint continues after an epoch.

    Raises:
        CannotMove: the epoch is not committed there.
    """
    offsets = checkpoint / "offsets" / str(_batch_of(checkpoint, epoch))
    return read_partitions(offsets.read_text(encoding="utf-8"))


def _batch_of(checkpoint: Path, epoch: int) -> int:
    batch = committed_batches(checkpoint).get(epoch)
    if batch is None:
        raise CannotMove(f"epoch {epoch} is not committed in {checkpoint}, or was removed")
    return batch


def _source(parent: Parent, epoch: int) -> _Source:
    tree = parent.checkpoint
    batch = _batch_of(tree, epoch)
    logs = (tree / log / str(batch) for log in ("offsets", "commits"))
    progress = read_progress(*(log.read_text(encoding="utf-8") for log in logs))
    files = sorted((tree / "state").glob("[0-9]*/_metadata"))
    operators = [read_operator((file / "metadata").read_text(encoding="utf-8")) for file in files]
    fingerprint = (tree / "fingerprint").read_text(encoding="utf-8")
    in_order = sorted(operators, key=lambda one: one.number)
    return _Source(parent, batch, progress, fingerprint, tuple(in_order))


def _require_alike(sources: Sequence[_Source]) -> None:
    base = sources[0]
    for other in sources[1:]:
        for name, one, another in (
            ("queries", base.fingerprint, other.fingerprint),
            ("offsets, watermarks or settings", base.progress, other.progress),
            ("state", _any_partitions(base.operators), _any_partitions(other.operators)),
        ):
            if one != another:
                trees = f"{base.parent.checkpoint} and {other.parent.checkpoint}"
                raise CannotMove(f"{trees} have different {name}: {one} and {another}")


def _any_partitions(operators: tuple[OperatorInfo, ...]) -> list[OperatorInfo]:
    return [replace(operator, partitions=0) for operator in operators]


def _stores(operators: Sequence[OperatorInfo], places: Iterable[KeyPlace]) -> list[dict[str, Any]]:
    """Return every store with the key's place in it, in the form that Java reads."""
    known = {(place.operator, place.name): place.positions for place in places}
    there = {(operator.number, operator.name) for operator in operators}
    if there != set(known):
        raise CannotMove(f"the state has operators {sorted(there)}, the query {sorted(known)}")
    return [
        {
            "name": {
                "operator": operator.number,
                "operatorName": operator.name,
                "store": store.name,
                "prefixColumns": store.prefix_columns,
            },
            "key": known[operator.number, operator.name],
        }
        for operator in operators
        for store in operator.stores
    ]


def _seed(base: _Source, building: Path, partitions: int) -> None:
    """Write all files of the target but its state."""
    tree = base.parent.checkpoint
    for file in tree.rglob("*"):
        path = PurePosixPath(file.relative_to(tree).as_posix())
        if belongs(path, base.batch) and file.is_file():
            copy = building / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(rewritten(path, file.read_bytes(), partitions))
    (building / "metadata").write_text(f'{{"id":"{uuid.uuid4()}"}}', encoding="utf-8")


def _request(
    sources: Sequence[_Source], building: Path, target: MoveTarget, stores: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "target": _tree(building, sources[0].batch, target.partitions, target.share),
        "parents": [
            _tree(one.parent.checkpoint, one.batch, _partitions(one), one.parent.share)
            for one in sources
        ],
        "stores": stores,
        "settings": dict(sources[0].progress.settings),
    }


def _partitions(source: _Source) -> int:
    counts = {operator.partitions for operator in source.operators}
    if len(counts) > 1:
        raise CannotMove(f"{source.parent.checkpoint} has operators with {counts} partitions")
    return max(counts, default=0)


def _tree(checkpoint: Path, batch: int, partitions: int, share: OwnedKeys) -> dict[str, Any]:
    return {
        "checkpoint": str(checkpoint.resolve()),
        # Batch n makes version n + 1 of the state.
        "version": batch + 1,
        "partitions": partitions,
        "share": {
            "buckets": base64.b64encode(np.packbits(share.buckets).tobytes()).decode(),
            "hot": _signed(share.hot_hashes),
            "foreign": _signed(share.foreign_hashes),
        },
    }


def _signed(hashes: U64Array) -> list[int]:
    signed: list[int] = hashes.view(np.int64).tolist()
    return signed


def _call(session: SparkSession, request: dict[str, Any]) -> list[dict[str, Any]]:
    mover = session.sparkContext._jvm.dev.tandem.spark.StateMover  # type: ignore[union-attr]
    try:
        answer = mover.move(session._jsparkSession, json.dumps(request))
    except (Py4JError, PySparkException) as error:
        raise CannotMove(f"Spark's state stores refuse: {error}") from error
    copied: list[dict[str, Any]] = json.loads(answer)
    return copied


def _compared(copied: list[dict[str, Any]]) -> list[MovedStore]:
    """Return what was moved, once the target's files are known to have it."""
    moved = []
    for one in copied:
        name, kept = one["name"], one["kept"]
        if kept != one["written"]:
            raise CannotMove(f"of {name} {kept} was kept, and {one['written']} is in the target")
        total = kept["hash"] % 2**64
        moved.append(MovedStore(name["operator"], name["store"], one["read"], kept["rows"], total))
    return moved

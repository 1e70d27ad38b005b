"""Decides what a checkpoint with moved state has besides the state; pure functions over text.

It continues the batches of one of the checkpoints that the state comes from, its base: with the
last two offsets and commits, the description of operators and schemas, and none of the state. Only
the number of state partitions may differ, which Spark reads from the last offset.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ON_HEAP = ".HDFSBackedStateStoreProvider"
_DESCRIPTIONS = frozenset({"_metadata", "_stateSchema"})
_LOGS = ("offsets", "commits")
_ID = "metadata"
_SUPPORTED = "v1"


class UnsupportedCheckpoint(Exception):
    """State of this form cannot be moved by key."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A state store of an operator."""

    name: str
    prefix_columns: int
    """The first columns of its key that it is searched by; 0 if only by whole keys."""


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """A stateful operator, as a checkpoint lists it."""

    number: int
    name: str
    stores: tuple[StoreInfo, ...]
    partitions: int


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far a query is after a batch: what must be equal in checkpoints that are united."""

    offsets: tuple[str, ...]
    """The end offset of each stream."""
    watermark: int
    next_watermark: int
    settings: Mapping[str, str]
    """Spark's settings that belong to the state, without the number of partitions."""


def read_progress(offsets: str, commit: str) -> BatchProgress:
    """Read the logs of a batch.

    Raises:
        UnsupportedCheckpoint: they are in another format, or state is not kept on the heap.
    """
    metadata, *ends = _content(offsets).splitlines()
    logged = json.loads(metadata)
    if not logged["conf"][_PROVIDER].endswith(_ON_HEAP):
        raise UnsupportedCheckpoint(f"state is kept by {logged['conf'][_PROVIDER]}")
    settings = {name: text for name, text in logged["conf"].items() if name != _PARTITIONS}
    after = json.loads(_content(commit))
    return BatchProgress(
        tuple(ends), logged["batchWatermarkMs"], after["nextBatchWatermarkMs"], settings
    )


def read_partitions(offsets: str) -> int:
    """Read the number of state partitions from the log of a batch."""
    return int(json.loads(_content(offsets).splitlines()[0])["conf"][_PARTITIONS])


def read_operator(text: str) -> OperatorInfo:
    """Read the description of an operator.

    Raises:
        UnsupportedCheckpoint: it is in another format.
    """
    document = json.loads(_content(text))
    operator, stores = document["operatorInfo"], document["stateStoreInfo"]
    partitions = {store["numPartitions"] for store in stores}
    if len(partitions) != 1:
        raise UnsupportedCheckpoint(f"the stores of an operator have {partitions} partitions")
    return OperatorInfo(
        operator["operatorId"],
        operator["operatorName"],
        tuple(StoreInfo(store["storeName"], store["numColsPrefixKey"]) for store in stores),
        partitions.pop(),
    )


def belongs(path: PurePosixPath, batch: int) -> bool:
    """Whether a file of the base, by its path in the checkpoint, is part of the target."""
    if path.name.startswith("."):
        # Checksums: Spark reads a file without one, and some files get another content.
        return False
    if len(path.parts) == 1:
        return path.name != _ID
    if path.parts[0] in _LOGS:
        return path.name in {str(batch - 1), str(batch)}
    return path.parts[0] == "state" and not _DESCRIPTIONS.isdisjoint(path.parts)


def rewritten(path: PurePosixPath, content: bytes, partitions: int) -> bytes:
    """Return a file's content in the target: with the target's number of state partitions."""
    if path.parts[0] == "offsets":
        return _with_partitions(content, _set_in_offsets, partitions)
    if path.match("state/*/_metadata/metadata"):
        return _with_partitions(content, _set_in_operator, partitions)
    return content


def _with_partitions(content: bytes, change: Any, partitions: int) -> bytes:
    version, line, *rest = content.decode("utf-8").split("\n")
    document = json.loads(line)
    change(document, partitions)
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return "\n".join([version, compact, *rest]).encode("utf-8")


def _set_in_offsets(document: dict[str, Any], partitions: int) -> None:
    document["conf"][_PARTITIONS] = str(partitions)


def _set_in_operator(document: dict[str, Any], partitions: int) -> None:
    for store in document["stateStoreInfo"]:
        store["numPartitions"] = partitions


def _content(text: str) -> str:
    version, _, content = text.partition("\n")
    if version != _SUPPORTED:
        raise UnsupportedCheckpoint(f"a file is of version {version}, not {_SUPPORTED}")
    return content

"""The files of a checkpoint with moved state: which of the base belong to it, and what changes."""

import json
from pathlib import PurePosixPath

import pytest

from tandem_runtime.spark.state.target_tree import (
    OperatorInfo,
    StoreInfo,
    UnsupportedCheckpoint,
    belongs,
    read_operator,
    read_progress,
    rewritten,
)

CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": "spark.HDFSBackedStateStoreProvider",
}
LOGGED = {"batchWatermarkMs": 7000, "batchTimestampMs": 1, "conf": CONF}
OFFSETS = f'v1\n{json.dumps(LOGGED)}\n{{"epoch":3}}\n{{"epoch":3}}'
STORES = [
    {"storeName": name, "numColsPrefixKey": 1, "numPartitions": 2} for name in ("left", "right")
]
OPERATOR = {
    "operatorInfo": {"operatorId": 4, "operatorName": "symmetricHashJoin"},
    "stateStoreInfo": STORES,
}
METADATA = f"v1\n{json.dumps(OPERATOR)}"


def chosen(*paths: str) -> list[str]:
    return [path for path in paths if belongs(PurePosixPath(path), 12)]


def test_last_two_batches_belong() -> None:
    logs = [f"{log}/{batch}" for log in ("offsets", "commits") for batch in (10, 11, 12, 13)]
    assert chosen(*logs) == ["offsets/11", "offsets/12", "commits/11", "commits/12"]


def test_descriptions_of_state_belong_and_state_does_not() -> None:
    described = [
        "state/0/_metadata/metadata",
        "state/0/0/_metadata/schema",
        "state/0/0/left-keyToNumValues/_metadata/schema",
        "fingerprint",
    ]
    dropped = ["state/0/0/13.delta", "state/0/1/left/13.snapshot", "metadata", "offsets/.12.crc"]
    assert chosen(*described, *dropped) == described


def test_only_number_of_partitions_changes() -> None:
    offsets = rewritten(PurePosixPath("offsets/12"), OFFSETS.encode(), 5).decode()
    version, logged, *ends = offsets.split("\n")
    assert (version, ends) == ("v1", ['{"epoch":3}', '{"epoch":3}'])
    changed = {**CONF, "spark.sql.shuffle.partitions": "5"}
    assert json.loads(logged) == {**LOGGED, "conf": changed}
    path = PurePosixPath("state/4/_metadata/metadata")
    operator = read_operator(rewritten(path, METADATA.encode(), 5).decode())
    assert operator.partitions == 5
    schema = b"\0\2v2\xff"
    assert rewritten(PurePosixPath("state/4/0/_metadata/schema"), schema, 5) == schema


def test_operator_and_its_stores_are_read() -> None:
    stores = (StoreInfo("left", 1), StoreInfo("right", 1))
    assert read_operator(METADATA) == OperatorInfo(4, "symmetricHashJoin", stores, 2)


def test_progress_does_not_have_number_of_partitions() -> None:
    commit = 'v1\n{"nextBatchWatermarkMs":9000}'
    one = read_progress(OFFSETS, commit)
    other = read_progress(
        rewritten(PurePosixPath("offsets/2"), OFFSETS.encode(), 9).decode(), commit
    )
    assert one == other
    assert (one.watermark, one.next_watermark) == (7000, 9000)
    assert one != read_progress(OFFSETS, 'v1\n{"nextBatchWatermarkMs":9001}')


def test_other_formats_are_refused() -> None:
    with pytest.raises(UnsupportedCheckpoint):
        read_operator(METADATA.replace("v1", "v2"))
    with pytest.raises(UnsupportedCheckpoint):
        read_progress(OFFSETS, 'v2\n{"nextBatchWatermarkMs":9000}')
    with pytest.raises(UnsupportedCheckpoint):
        read_progress(OFFSETS.replace("HDFSBacked", "RocksDB"), 'v1\n{"nextBatchWatermarkMs":9000}')
    uneven = json.dumps(
        {**OPERATOR, "stateStoreInfo": [STORES[0], {**STORES[1], "numPartitions": 3}]}
    )
    with pytest.raises(UnsupportedCheckpoint):
        read_operator(f"v1\n{uneven}")

"""The query of records.yaml."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

RESULT = "user STRING, record BIGINT, records BIGINT"
STATE = "record BIGINT, records BIGINT"


def build(streams: dict[str, DataFrame]) -> DataFrame:
    """Return users with a new largest payment, and how often that has happened."""
    return (
        streams["payments"]
        .where("amount IS NOT NULL")
        .groupBy("user")
        .applyInPandasWithState(
            new_records,
            outputStructType=RESULT,
            stateStructType=STATE,
            outputMode="update",
            timeoutConf=GroupStateTimeout.NoTimeout,
        )
    )


def new_records(
    key: tuple[str], batches: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Compare an epoch's largest payment of a user with the largest so far.

    Only the epoch's maximum counts: the order of rows within an epoch must not matter, else the
    twins could differ.
    """
    record, records = state.get if state.exists else (None, 0)
    largest = max(int(batch["amount"].max()) for batch in batches)
    if record is not None and largest <= record:
        return
    state.update((largest, records + 1))
    yield pd.DataFrame({"user": [key[0]], "record": [largest], "records": [records + 1]})

"""The query of deduplication.yaml."""

from pyspark.sql import DataFrame


def build(streams: dict[str, DataFrame]) -> DataFrame:
    """Keep the first click of each id within the watermark's delay."""
    return streams["clicks"].dropDuplicatesWithinWatermark(["click_id"])

"""A plain Structured Streaming query, as a program, to compare Tandem with.

It reads JSON files, runs the same SQL, and writes each micro-batch as one Parquet file named by its
number, by `foreachBatch`. Started by `spark-submit` it is stock; with `--tuned` it has the JVM and
the settings of Tandem's replicas. It runs until it is killed, or stops between two batches once
its stop file appears.
"""

import argparse
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

_LOOK_SECONDS = 0.02


def main(arguments: list[str]) -> None:
    """Run the query."""
    options = _options().parse_args(arguments)
    options.stop_file.unlink(missing_ok=True)
    session = _tuned_session(options) if options.tuned else SparkSession.builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    if options.repartition:
        _repartition(session, options)
    reader = session.readStream.schema(options.schema)
    if options.max_files:
        reader = reader.option("maxFilesPerTrigger", options.max_files)
    reader.json(str(options.input)).createOrReplaceTempView(options.stream)
    options.output.mkdir(parents=True, exist_ok=True)

    def deliver(result: DataFrame, batch: int) -> None:
        """Write a batch atomically; a repeated one replaces itself."""
        draft = options.output / f".{batch:012d}"
        pq.write_table(result.toArrow(), draft)
        draft.replace(options.output / f"{batch:012d}.parquet")

    writer = (
        session.sql(options.sql)
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(options.checkpoint))
        .foreachBatch(deliver)
    )
    if options.trigger_ms:
        writer = writer.trigger(processingTime=f"{options.trigger_ms} milliseconds")
    query = writer.start()
    while query.isActive:
        time.sleep(_LOOK_SECONDS)
        if options.stop_file.exists() and not query.status["isTriggerActive"]:
            query.stop()
    query.awaitTermination()


def _repartition(session: SparkSession, options: argparse.Namespace) -> None:
    """Give the checkpoint another number of state partitions, if it has one."""
    if not options.tuned:
        # Works with RocksDB only.
        manager = session._streamingCheckpointManager
        manager.repartition(str(options.checkpoint), options.repartition)
        return
    # Imported here: stock Spark must not need any of it.
    from bench.rescale.repartition import repartition  # noqa: PLC0415

    repartition(session, options.checkpoint, options.repartition)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    for name in ("--input", "--output", "--checkpoint"):
        parser.add_argument(name, type=Path, required=True)
    for name in ("--schema", "--stream", "--sql"):
        parser.add_argument(name, required=True)
    parser.add_argument("--trigger-ms", type=int, default=0)
    parser.add_argument("--max-files", type=int, default=0)
    parser.add_argument("--stop-file", type=Path, required=True)
    parser.add_argument("--repartition", type=int, default=0)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--memory", type=int, default=2**30)
    return parser


def _tuned_session(options: argparse.Namespace) -> SparkSession:
    # Imported here: stock Spark must not need any of it.
    from tandem_core.model.fields.quantities import ByteSize  # noqa: PLC0415
    from tandem_core.model.spec import Spark  # noqa: PLC0415
    from tandem_runtime.spark.jvm.launch import start_driver  # noqa: PLC0415

    spark = Spark(cores=options.cores, memory=ByteSize(options.memory))
    return start_driver(spark, options.checkpoint.with_name("scratch")).session


if __name__ == "__main__":
    main(sys.argv[1:])

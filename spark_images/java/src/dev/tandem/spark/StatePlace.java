package dev.tandem.spark;

import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.streaming.state.StatePartitionKeyExtractor;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Where the rows of a store belong in one checkpoint: which keys it owns, and in which partition
 * Spark looks for a key.
 */
final class StatePlace {
  private final StatePartitionKeyExtractor extractor;
  private final UnsafeProjection partitionNumber;
  private final KeyHash keyHash;
  private final KeyShare share;

  /** The key is in these fields of what Spark partitions by. */
  StatePlace(StatePartitionKeyExtractor extractor, int[] key, int partitions, KeyShare share) {
    StructType schema = extractor.partitionKeySchema();
    this.extractor = extractor;
    this.partitionNumber = partitionNumber(schema, partitions);
    this.keyHash = new KeyHash(schema, key);
    this.share = share;
  }

  /** Whether the checkpoint owns the key of a row, given by the row's state key. */
  boolean owns(UnsafeRow stateKey) {
    return share.holds(keyHash.of(extractor.partitionKey(stateKey)));
  }

  /** Returns the partition in which Spark looks for a row. */
  int partition(UnsafeRow stateKey) {
    return partitionNumber.apply(extractor.partitionKey(stateKey)).getInt(0);
  }

  /** Throws if a row of the checkpoint belongs elsewhere. */
  void require(UnsafeRow stateKey, int partition) {
    if (partition(stateKey) != partition) {
      throw new IllegalStateException(
          "a row is in partition " + partition + " and belongs to " + partition(stateKey));
    }
    if (!owns(stateKey)) {
      throw new IllegalStateException(
          "a row is in a checkpoint that does not own its key, by the fields that hold the key");
    }
  }

  /** Spark's own way to number partitions, of the fields in order. */
  private static UnsafeProjection partitionNumber(StructType schema, int partitions) {
    StructField[] fields = schema.fields();
    Expression[] columns = new Expression[fields.length];
    for (int i = 0; i < fields.length; i++) {
      columns[i] = new BoundReference(i, fields[i].dataType(), fields[i].nullable());
    }
    return UnsafeProjection.create(
        seq(new HashPartitioning(seq(columns), partitions).partitionIdExpression()));
  }

  private static Seq<Expression> seq(Expression... expressions) {
    return CollectionConverters.asScala(java.util.List.of(expressions)).toSeq();
  }
}

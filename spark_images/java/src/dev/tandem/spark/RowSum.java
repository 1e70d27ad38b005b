package dev.tandem.spark;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;

/** Counts rows of state and adds up their hashes, so that the order of rows does not matter. */
final class RowSum {
  private static final long SEED = 42L;

  private long rows;
  private long hash;

  /** Adds a row; its hash covers all bytes of key and value. */
  void add(UnsafeRow key, UnsafeRow value) {
    rows++;
    hash += bytesHash(value, bytesHash(key, SEED));
  }

  Result result() {
    return new Result(rows, hash);
  }

  private static long bytesHash(UnsafeRow row, long seed) {
    return XXH64.hashUnsafeBytes(
        row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes(), seed);
  }

  /** The number of rows, and the sum of their hashes modulo 2^64. */
  record Result(long rows, long hash) {}
}

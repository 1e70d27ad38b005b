package dev.tandem.spark;

import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Hashes the key columns of Spark's rows to the 64 bits that decide a key's pair.
 *
 * <p>The rules are those of {@code tandem_core.routing.key_hashing}, where they are explained: a
 * row must have the hash here that its key had when it was routed.
 */
public final class KeyHash {
  private static final long SEED = 42L;

  private final int[] positions;
  private final ColumnHash[] columns;

  /** Hashes the fields at these positions, in the order of the key's columns. */
  public KeyHash(StructType schema, int[] positions) {
    if (positions.length == 0) {
      throw new IllegalArgumentException("a key needs at least one column");
    }
    this.positions = positions.clone();
    this.columns = new ColumnHash[positions.length];
    for (int i = 0; i < positions.length; i++) {
      columns[i] = columnHash(schema.fields()[positions[i]].dataType());
    }
  }

  /** Returns the hash of a row's key. */
  public long of(InternalRow row) {
    long hash = ofColumn(row, 0);
    for (int i = 1; i < columns.length; i++) {
      hash = XXH64.hashLong(ofColumn(row, i), hash);
    }
    return hash;
  }

  private long ofColumn(InternalRow row, int column) {
    int position = positions[column];
    return row.isNullAt(position) ? SEED : columns[column].of(row, position);
  }

  /** Hashes a value that is not null. */
  private interface ColumnHash {
    long of(InternalRow row, int position);
  }

  private static ColumnHash columnHash(DataType type) {
    if (type instanceof StringType text && text.isUTF8BinaryCollation()) {
      return (row, position) -> ofText(row.getUTF8String(position));
    } else if (type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType) {
      return (row, position) -> ofLong(row.getLong(position));
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return (row, position) -> ofLong(row.getInt(position));
    } else if (type instanceof ShortType) {
      return (row, position) -> ofLong(row.getShort(position));
    } else if (type instanceof ByteType) {
      return (row, position) -> ofLong(row.getByte(position));
    } else if (type instanceof BooleanType) {
      return (row, position) -> ofLong(row.getBoolean(position) ? 1 : 0);
    } else if (type instanceof DecimalType decimal) {
      return (row, position) ->
          ofUnscaled(
              row.getDecimal(position, decimal.precision(), decimal.scale())
                  .toJavaBigDecimal()
                  .unscaledValue());
    } else if (type instanceof BinaryType) {
      return (row, position) -> ofBytes(row.getBinary(position));
    }
    throw new IllegalArgumentException("a column of type " + type.sql() + " cannot be a key");
  }

  private static long ofLong(long value) {
    return XXH64.hashLong(value, SEED);
  }

  private static long ofText(UTF8String text) {
    return XXH64.hashUnsafeBytes(text.getBaseObject(), text.getBaseOffset(), text.numBytes(), SEED);
  }

  private static long ofBytes(byte[] bytes) {
    return XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, SEED);
  }

  private static long ofUnscaled(BigInteger value) {
    if (value.bitLength() < Long.SIZE) {
      return ofLong(value.longValueExact());
    }
    byte[] bytes = new byte[2 * Long.BYTES];
    putLittleEndian(bytes, 0, value.longValue());
    putLittleEndian(bytes, Long.BYTES, value.shiftRight(Long.SIZE).longValueExact());
    return ofBytes(bytes);
  }

  private static void putLittleEndian(byte[] bytes, int start, long word) {
    for (int i = 0; i < Long.BYTES; i++) {
      bytes[start + i] = (byte) (word >>> (Byte.SIZE * i));
    }
  }
}

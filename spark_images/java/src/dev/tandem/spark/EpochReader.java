package dev.tandem.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Passes the record batches of one file to Spark, as views of the mapped memory. */
final class EpochReader implements PartitionReader<ColumnarBatch> {
  private final BufferAllocator allocator;
  private final MappedStream stream;
  private final ColumnarBatch batch;

  EpochReader(Path file, StructType schema) {
    allocator = ArrowUtils.rootAllocator().newChildAllocator("epoch", 0, Long.MAX_VALUE);
    try {
      stream = new MappedStream(file, allocator);
    } catch (IOException error) {
      allocator.close();
      throw new UncheckedIOException(error);
    }
    batch = new ColumnarBatch(columns(file, schema));
  }

  private ColumnVector[] columns(Path file, StructType schema) {
    StructField[] fields = schema.fields();
    ColumnVector[] columns = new ColumnVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      FieldVector vector = stream.root().getVector(i);
      DataType found = ArrowUtils.fromArrowField(vector.getField());
      boolean same = DataType.equalsIgnoreNullability(found, fields[i].dataType());
      if (!same || !vector.getName().equals(fields[i].name())) {
        close();
        throw new IllegalArgumentException(
            file + " has " + vector.getField() + " where " + fields[i] + " is declared");
      }
      columns[i] = new LastingVector(vector);
    }
    return columns;
  }

  @Override
  public boolean next() throws IOException {
    return stream.next();
  }

  @Override
  public ColumnarBatch get() {
    batch.setNumRows(stream.root().getRowCount());
    return batch;
  }

  @Override
  public void close() {
    stream.close();
    allocator.close();
  }

  /** A vector that is reused for every batch, so Spark must not close it in between. */
  private static final class LastingVector extends ArrowColumnVector {
    LastingVector(FieldVector vector) {
      super(vector);
    }

    @Override
    public void closeIfFreeable() {}
  }
}

package dev.tandem.spark;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * One stream of a query. The next offset is always that of the next epoch, and requesting it waits
 * until the epoch is published: so all streams of a query agree, and Spark neither plans an
 * unintended empty batch nor polls in vain.
 */
final class EpochStream implements MicroBatchStream, SupportsAdmissionControl {
  private final Channel channel;
  private final String inbox;
  private final String stream;
  private final long base;
  private final StructType schema;

  EpochStream(Channel channel, String inbox, String stream, long base, StructType schema) {
    this.channel = channel;
    this.inbox = inbox;
    this.stream = stream;
    this.base = base;
    this.schema = schema;
  }

  @Override
  public Offset initialOffset() {
    return new EpochOffset(base);
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("latestOffset(start, limit) is to be used");
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    long next = epochOf(start) + 1;
    Epochs.asks(channel, next);
    awaitPublished(next);
    return new EpochOffset(next);
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    long epoch = epochOf(end);
    // A batch that was logged and not committed runs again without requesting its offset.
    awaitPublished(epoch);
    channel.runs(epoch);
    return new InputPartition[] {new EpochPartition(file(epoch).toString())};
  }

  private Path file(long epoch) {
    return Path.of(inbox, Long.toString(epoch), stream + ".arrow");
  }

  private void awaitPublished(long epoch) {
    try {
      channel.awaitPublished(epoch);
    } catch (InterruptedException stopped) {
      // An unchecked exception among those by which Spark recognizes a stopped query.
      throw new UncheckedIOException(new InterruptedIOException("stopped while waiting"));
    }
  }

  private static long epochOf(Offset offset) {
    return ((EpochOffset) offset).epoch;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ReaderFactory(schema);
  }

  @Override
  public Offset deserializeOffset(String json) {
    return EpochOffset.parse(json);
  }

  @Override
  public void commit(Offset end) {}

  @Override
  public void stop() {}

  private record EpochPartition(String file) implements InputPartition {}

  private record ReaderFactory(StructType schema) implements PartitionReaderFactory {
    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new EpochReader(Path.of(((EpochPartition) partition).file()), schema);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("epochs are read in columns");
    }
  }
}

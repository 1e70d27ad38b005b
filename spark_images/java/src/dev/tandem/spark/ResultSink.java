package dev.tandem.spark;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes a batch's rows to {@code <inbox>/<epoch>/result.arrow}, reports them, and holds the batch
 * back until Python lets it finish. Until then it is not committed.
 */
final class ResultSink implements VoidFunction2<Dataset<Row>, Long> {
  private final Channel channel;
  private final Path inbox;

  ResultSink(Channel channel, Path inbox) {
    this.channel = channel;
    this.inbox = inbox;
  }

  @Override
  public void call(Dataset<Row> rows, Long batch) throws Exception {
    long epoch = channel.running();
    Path file = inbox.resolve(Long.toString(epoch)).resolve("result.arrow");
    write(file, (org.apache.spark.sql.classic.Dataset<Row>) rows);
    channel.tell(
        Map.of("event", "result", "epoch", epoch, "batch", batch, "file", file.toString()));
    channel.awaitFinished(epoch);
  }

  private static void write(Path file, org.apache.spark.sql.classic.Dataset<Row> rows)
      throws IOException {
    byte[][] batches = (byte[][]) rows.toArrowBatchRdd().collect();
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
      var writer = new ArrowBatchStreamWriter(rows.schema(), out, "UTC", true, false);
      writer.writeBatches(CollectionConverters.asScala(java.util.List.of(batches).iterator()));
      writer.end();
    }
  }
}

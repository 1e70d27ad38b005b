package dev.tandem.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The streaming source {@code tandem}: epochs as local Arrow files, one micro-batch each.
 *
 * <p>Options: {@code channel}, the name given to {@link Epochs#open}; {@code inbox}, the directory
 * with {@code <epoch>/<stream>.arrow}; {@code stream}; {@code base}, the epoch before the first one
 * of a query without checkpoint. The schema must be given.
 */
public final class EpochSource implements TableProvider, DataSourceRegister {
  @Override
  public String shortName() {
    return "tandem";
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException("the source tandem needs a schema");
  }

  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    return new EpochTable(schema);
  }

  private record EpochTable(StructType schema) implements Table, SupportsRead {
    @Override
    public String name() {
      return "tandem";
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> new EpochScan(schema, options);
    }
  }

  private record EpochScan(StructType schema, CaseInsensitiveStringMap options) implements Scan {
    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
      return new EpochStream(
          Epochs.channel(options.get("channel")),
          options.get("inbox"),
          options.get("stream"),
          options.getLong("base", 0),
          schema);
    }
  }
}

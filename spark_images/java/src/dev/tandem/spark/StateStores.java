package dev.tandem.spark;

import java.io.IOException;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatePartitionKeyExtractorFactory;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.PrefixKeyScanStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.ReadStateStore;
import org.apache.spark.sql.execution.streaming.state.StatePartitionKeyExtractor;
import org.apache.spark.sql.execution.streaming.state.StateSchemaCompatibilityChecker;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreColFamilySchema;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.List;

/**
 * One store of one stateful operator, in all partitions of a checkpoint, kept on the heap.
 *
 * <p>All of this is Spark's internal interface: it may change with every release.
 */
final class StateStores {
  private static final String COLUMNS = StateStore.DEFAULT_COL_FAMILY_NAME();
  private static final String JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion";

  private final String root;
  private final StoreName name;
  private final StateStoreColFamilySchema schema;
  private final StateStoreConf conf;
  private final Configuration hadoop;
  private final String joinFormat;

  /** The settings are those of the checkpoint's batch, over those of the session. */
  StateStores(String checkpoint, StoreName name, SQLConf settings, Configuration hadoop) {
    this.root = new Path(checkpoint, "state").toString();
    this.name = name;
    this.hadoop = hadoop;
    this.conf = new StateStoreConf(settings, scala.collection.immutable.Map$.MODULE$.empty());
    this.joinFormat = settings.getConfString(JOIN_FORMAT, "2");
    this.schema = readSchema();
  }

  /** A store of an operator, as the operator's metadata list it. */
  record StoreName(int operator, String operatorName, String store, int prefixColumns) {}

  /** Takes the rows of a store. */
  interface RowSink {
    void take(UnsafeRow key, UnsafeRow value);
  }

  /** Throws if the other store's rows have another layout. */
  void requireSameSchema(StateStores other) {
    if (!schema.keySchema().equals(other.schema.keySchema())
        || !schema.valueSchema().equals(other.schema.valueSchema())) {
      throw new IllegalArgumentException(name + " has another schema in " + other.root);
    }
  }

  /** Returns where rows belong; the key is in these fields of what Spark partitions by. */
  StatePlace place(int[] key, int partitions, KeyShare share) {
    StatePartitionKeyExtractor extractor =
        StatePartitionKeyExtractorFactory.create(
            name.operatorName(),
            schema.keySchema(),
            name.store(),
            COLUMNS,
            Option.apply((Object) Integer.valueOf(joinFormat)),
            Option.empty());
    return new StatePlace(extractor, key, partitions, share);
  }

  /** Passes on every row of a partition at a version. */
  void read(int partition, long version, RowSink sink) {
    StateStoreProvider provider = open(partition);
    try {
      ReadStateStore store = provider.getReadStore(version, Option.empty());
      try {
        Iterator<UnsafeRowPair> rows = store.iterator(COLUMNS);
        while (rows.hasNext()) {
          UnsafeRowPair row = rows.next();
          sink.take(row.key(), row.value());
        }
      } finally {
        store.release();
      }
    } finally {
      provider.close();
    }
  }

  /** Begins a partition, which must not exist, without rows. */
  NewPartition create(int partition) {
    return new NewPartition(open(partition), hadoop);
  }

  /** A partition that is being written, as one snapshot. */
  static final class NewPartition implements AutoCloseable {
    private static final long FIRST_VERSION = 1;

    private final StateStoreProvider provider;
    private final Configuration hadoop;
    private final StateStore store;

    private NewPartition(StateStoreProvider provider, Configuration hadoop) {
      this.provider = provider;
      this.hadoop = hadoop;
      // A snapshot is forced at the commit; the rows also go to a file of changes.
      this.store = provider.getStore(FIRST_VERSION - 1, Option.empty(), true, false);
    }

    void put(UnsafeRow key, UnsafeRow value) {
      store.put(key, value, COLUMNS);
    }

    /** Writes the rows as the snapshot of a version. */
    void commit(long version) throws IOException {
      store.commit();
      Path place = provider.stateStoreId().storeCheckpointLocation();
      FileSystem files = place.getFileSystem(hadoop);
      Path written = new Path(place, FIRST_VERSION + ".snapshot");
      Path wanted = new Path(place, version + ".snapshot");
      // A file does not contain its version. Checksums follow their files.
      if (version != FIRST_VERSION && !files.rename(written, wanted)) {
        throw new IOException(written + " cannot be renamed to " + wanted);
      }
      files.delete(new Path(place, FIRST_VERSION + ".delta"), false);
    }

    @Override
    public void close() {
      if (!store.hasCommitted()) {
        store.abort();
      }
      provider.close();
    }
  }

  private StateStoreProvider open(int partition) {
    StructType keys = schema.keySchema();
    KeyStateEncoderSpec encoder =
        name.prefixColumns() > 0
            ? new PrefixKeyScanStateEncoderSpec(keys, name.prefixColumns())
            : new NoPrefixKeyStateEncoderSpec(keys);
    return StateStoreProvider.createAndInit(
        id(partition), keys, schema.valueSchema(), encoder, false, conf, hadoop, false,
        Option.empty());
  }

  private StateStoreColFamilySchema readSchema() {
    // Spark writes the schema beside the first partition only.
    List<StateStoreColFamilySchema> found =
        new StateSchemaCompatibilityChecker(id(0), hadoop, noFiles(), Option.empty(), false)
            .readSchemaFile();
    if (found.size() != 1) {
      throw new IllegalArgumentException(name + " has " + found.size() + " column families");
    }
    return found.head();
  }

  private static List<Path> noFiles() {
    return scala.collection.immutable.List$.MODULE$.empty();
  }

  private StateStoreProviderId id(int partition) {
    StateStoreId store = new StateStoreId(root, name.operator(), partition, name.store());
    return new StateStoreProviderId(store, UUID.randomUUID());
  }
}

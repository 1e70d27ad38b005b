package dev.tandem.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tandem.spark.StateStores.NewPartition;
import dev.tandem.spark.StateStores.StoreName;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Copies rows of state, by their keys, from checkpoints to a new one.
 *
 * <p>A row is copied if its key belongs to the target's share, to the partition where Spark looks
 * for it. Every row that is read must be in the partition that Spark gives it, and belong to the
 * share of the checkpoint where it is: otherwise the key would be looked for in the wrong place.
 */
public final class StateMover {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Move move;
  private final SQLConf settings;
  private final Configuration hadoop;

  private StateMover(SparkSession session, Move move) {
    this.move = move;
    this.settings = session.sessionState().conf().clone();
    this.hadoop = session.sessionState().newHadoopConf();
    move.settings().forEach(settings::setConfString);
  }

  /** What is to be copied. */
  record Move(
      Target target, List<Parent> parents, List<Store> stores, Map<String, String> settings) {}

  /** A checkpoint without rows, which has the schemas. */
  record Target(String checkpoint, long version, int partitions, KeyShare share) {}

  /** A checkpoint to read. */
  record Parent(String checkpoint, long version, int partitions, KeyShare share) {}

  /** A store, and the fields of its partitioning key that hold the key's columns. */
  record Store(StoreName name, int[] key) {}

  /** What was copied of a store, and what was then read from the target's files. */
  record Copied(StoreName name, long read, RowSum.Result kept, RowSum.Result written) {}

  /** Returns the system's id of the calling thread. */
  public static int nativeThread() throws IOException {
    Path thread = Files.readSymbolicLink(Path.of("/proc/thread-self"));
    return Integer.parseInt(thread.getFileName().toString());
  }

  /** Copies all stores, and returns what was copied of each; both are JSON. */
  public static String move(SparkSession session, String move) throws IOException {
    StateMover mover = new StateMover(session, JSON.readValue(move, Move.class));
    List<Copied> copied = new ArrayList<>();
    for (Store store : mover.move.stores()) {
      copied.add(mover.copy(store));
    }
    return JSON.writeValueAsString(copied);
  }

  private Copied copy(Store store) throws IOException {
    StateStores target = stores(move.target().checkpoint(), store);
    StatePlace place = target.place(store.key(), move.target().partitions(), move.target().share());
    Copy copy = write(store, target, place);
    // Only now is the target's state off the heap.
    return new Copied(store.name(), copy.read, copy.kept.result(), written(target, place));
  }

  private Copy write(Store store, StateStores target, StatePlace place) throws IOException {
    List<NewPartition> partitions = new ArrayList<>();
    try {
      for (int number = 0; number < move.target().partitions(); number++) {
        partitions.add(target.create(number));
      }
      Copy copy = new Copy(place, partitions);
      for (Parent parent : move.parents()) {
        StateStores source = stores(parent.checkpoint(), store);
        source.requireSameSchema(target);
        copy.add(source, parent, source.place(store.key(), parent.partitions(), parent.share()));
      }
      for (NewPartition partition : partitions) {
        partition.commit(move.target().version());
      }
      return copy;
    } finally {
      partitions.forEach(NewPartition::close);
    }
  }

  private StateStores stores(String checkpoint, Store store) {
    return new StateStores(checkpoint, store.name(), settings, hadoop);
  }

  /** Counts the rows in the target's files. */
  private RowSum.Result written(StateStores target, StatePlace place) {
    RowSum sum = new RowSum();
    for (int number = 0; number < move.target().partitions(); number++) {
      int partition = number;
      target.read(
          partition,
          move.target().version(),
          (key, value) -> {
            place.require(key, partition);
            sum.add(key, value);
          });
    }
    return sum.result();
  }

  /** Copies the rows of one store; counts what it reads and keeps. */
  private static final class Copy {
    private final StatePlace place;
    private final List<NewPartition> partitions;
    private final RowSum kept = new RowSum();
    private long read;

    Copy(StatePlace place, List<NewPartition> partitions) {
      this.place = place;
      this.partitions = partitions;
    }

    void add(StateStores source, Parent parent, StatePlace placeBefore) {
      for (int number = 0; number < parent.partitions(); number++) {
        int partition = number;
        source.read(
            partition,
            parent.version(),
            (key, value) -> {
              placeBefore.require(key, partition);
              take(key, value);
            });
      }
    }

    private void take(UnsafeRow key, UnsafeRow value) {
      read++;
      if (place.owns(key)) {
        partitions.get(place.partition(key)).put(key, value);
        kept.add(key, value);
      }
    }
  }
}

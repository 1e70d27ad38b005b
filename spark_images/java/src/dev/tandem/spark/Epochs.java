package dev.tandem.spark;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/**
 * The interface for Python. Open a channel by name before building the query's data frames: the
 * source finds it by that name.
 *
 * <p>Events, in the order in which they happen:
 *
 * <ul>
 *   <li>{@code result}: {@code epoch}, {@code batch}, {@code file}; the batch waits for {@link
 *       #finish};
 *   <li>{@code asked}: {@code epoch}; Spark requests it, so the batch before it is committed.
 *       {@code lateDropped}, {@code durations} and {@code heldBack} describe that batch, if there
 *       was one;
 *   <li>{@code ended}: the query is over; {@code type}, {@code message}, {@code condition} and
 *       {@code parameters} say why, unless it was stopped.
 * </ul>
 */
public final class Epochs {
  private static final Map<String, Channel> CHANNELS = new ConcurrentHashMap<>();
  private static final Map<Channel, StreamingQuery> QUERIES = new ConcurrentHashMap<>();

  private Epochs() {}

  /** Opens a channel for one query. */
  public static void open(String name) {
    CHANNELS.put(name, new Channel());
  }

  /** Starts the query of a channel. */
  public static void start(
      String name, Dataset<Row> result, String outputMode, String checkpoint, String inbox)
      throws TimeoutException {
    Channel channel = channel(name);
    StreamingQuery query =
        result
            .writeStream()
            .outputMode(outputMode)
            .option("checkpointLocation", checkpoint)
            .foreachBatch(new ResultSink(channel, Path.of(inbox)))
            .start();
    QUERIES.put(channel, query);
    Thread watch = new Thread(() -> awaitEnd(channel, query), "watch-" + name);
    watch.setDaemon(true);
    watch.start();
  }

  /** Lets the query read an epoch; its files must be complete. */
  public static void publish(String name, long epoch) {
    channel(name).publish(epoch);
  }

  /** Allows the batch of an epoch to commit. */
  public static void finish(String name, long epoch) {
    channel(name).finish(epoch);
  }

  /** Waits for the next event of a channel; the last one is {@code ended}. */
  public static String nextEvent(String name) throws InterruptedException {
    return channel(name).nextEvent();
  }

  /** Stops a query. A batch that still waits for {@link #finish} is not committed. */
  public static void stop(String name) throws TimeoutException {
    StreamingQuery query = QUERIES.remove(channel(name));
    if (query != null) {
      query.stop();
    }
  }

  static Channel channel(String name) {
    Channel channel = CHANNELS.get(name);
    if (channel == null) {
      throw new IllegalStateException("no channel " + name + " is open");
    }
    return channel;
  }

  static void asks(Channel channel, long epoch) {
    if (!channel.isFirstToAsk(epoch)) {
      return;
    }
    Map<String, Object> event = new HashMap<>(Map.of("event", "asked", "epoch", epoch));
    StreamingQuery query = QUERIES.get(channel);
    StreamingQueryProgress progress = query == null ? null : query.lastProgress();
    if (progress != null) {
      event.put("lateDropped", lateDropped(progress));
      event.put("durations", progress.durationMs());
      event.put("heldBack", channel.heldBack());
    }
    channel.tell(event);
  }

  private static long lateDropped(StreamingQueryProgress progress) {
    long dropped = 0;
    for (StateOperatorProgress operator : progress.stateOperators()) {
      dropped += operator.numRowsDroppedByWatermark();
    }
    return dropped;
  }

  private static void awaitEnd(Channel channel, StreamingQuery query) {
    Map<String, Object> event = new HashMap<>(Map.of("event", "ended"));
    try {
      query.awaitTermination();
    } catch (StreamingQueryException failure) {
      Throwable reason = innermost(failure);
      event.put("type", reason.getClass().getName());
      event.put("message", String.valueOf(reason.getMessage()));
      event.put("condition", condition(reason));
      event.put("parameters", parameters(reason));
    }
    channel.tell(event);
  }

  /** Returns the innermost cause with a Spark error condition, else the innermost one. */
  private static Throwable innermost(Throwable failure) {
    Throwable last = failure;
    Throwable named = null;
    for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
      last = cause;
      named = condition(cause) == null ? named : cause;
    }
    return named == null ? last : named;
  }

  private static Map<String, String> parameters(Throwable error) {
    return error instanceof SparkThrowable known ? known.getMessageParameters() : Map.of();
  }

  private static String condition(Throwable error) {
    return error instanceof SparkThrowable known ? known.getCondition() : null;
  }
}

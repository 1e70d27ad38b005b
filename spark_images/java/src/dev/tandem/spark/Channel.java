package dev.tandem.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Connects one query and the Python process.
 *
 * <p>Python publishes epochs and lets batches finish; the query's thread waits for both, and can be
 * interrupted in either wait. The query reports events, in order, each one a JSON object.
 */
final class Channel {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
  private long published = Long.MIN_VALUE;
  private long finished = Long.MIN_VALUE;
  private long asked = Long.MIN_VALUE;
  private long running = Long.MIN_VALUE;
  private long heldBack;

  /** Makes an epoch and all before it readable. */
  synchronized void publish(long epoch) {
    published = Math.max(published, epoch);
    notifyAll();
  }

  /** Allows the batches of an epoch and of all before it to return and commit. */
  synchronized void finish(long epoch) {
    finished = Math.max(finished, epoch);
    notifyAll();
  }

  /** Waits without a timeout for an epoch that the query is about to read. */
  synchronized void awaitPublished(long epoch) throws InterruptedException {
    while (published < epoch) {
      wait();
    }
  }

  /** Waits without a timeout until a batch may commit. */
  synchronized void awaitFinished(long epoch) throws InterruptedException {
    long begun = System.nanoTime();
    while (finished < epoch) {
      wait();
    }
    heldBack = System.nanoTime() - begun;
  }

  /** Returns how long the last batch waited for {@code finish}, in milliseconds. */
  synchronized double heldBack() {
    return heldBack / 1e6;
  }

  /** Records the epoch that a batch reads. */
  synchronized void runs(long epoch) {
    running = epoch;
  }

  /** Returns the epoch of the batch that was planned last. */
  synchronized long running() {
    return running;
  }

  /** Records that a source requests an epoch; returns whether it is the query's first to do so. */
  synchronized boolean isFirstToAsk(long epoch) {
    boolean first = epoch > asked;
    asked = Math.max(asked, epoch);
    return first;
  }

  /** Adds an event. */
  void tell(Map<String, ?> event) {
    try {
      events.add(JSON.writeValueAsString(event));
    } catch (JsonProcessingException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Waits for the next event. */
  String nextEvent() throws InterruptedException {
    return events.take();
  }
}

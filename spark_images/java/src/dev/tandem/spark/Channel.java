package dev.tandem.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Where one query and the Python process meet.
 *
 * <p>Python publishes epochs and lets batches finish; the query's thread waits for both, and can be
 * interrupted in either wait. What happens to the query becomes a list of events, in order, each
 * one a JSON object.
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

  /** Lets the batch of an epoch, and of all before it, return and be committed. */
  synchronized void finish(long epoch) {
    finished = Math.max(finished, epoch);
    notifyAll();
  }

  /** Waits, without a limit, for an epoch that the query is about to read. */
  synchronized void awaitPublished(long epoch) throws InterruptedException {
    while (published < epoch) {
      wait();
    }
  }

  /** Waits, without a limit, until a batch may be committed. */
  synchronized void awaitFinished(long epoch) throws InterruptedException {
    long begun = System.nanoTime();
    while (finished < epoch) {
      wait();
    }
    heldBack = System.nanoTime() - begun;
  }

  /** Tells how long the last batch was held back, in milliseconds. */
  synchronized double heldBack() {
    return heldBack / 1e6;
  }

  /** Notes that a batch reads an epoch. */
  synchronized void runs(long epoch) {
    running = epoch;
  }

  /** Tells which epoch the batch reads that was planned last. */
  synchronized long running() {
    return running;
  }

  /** Notes that a source asks for an epoch; several sources of a query do so one after the other. */
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

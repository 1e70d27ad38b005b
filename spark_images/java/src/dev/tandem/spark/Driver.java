package dev.tandem.spark;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkConf;
import org.apache.spark.api.python.Py4JServer;

/**
 * The JVM's main class: serves Py4J to the Python process that started it, and dies with it.
 *
 * <p>The port and the secret go to the path given as the only argument, as one line. The standard
 * input is a pipe that only the Python process holds: when it ends, for any reason, the JVM halts
 * without running hooks. A checkpoint survives that like a kill of the process.
 */
public final class Driver {
  private Driver() {}

  /** Serves until the standard input ends. */
  public static void main(String[] arguments) throws IOException {
    Py4JServer server = new Py4JServer(new SparkConf());
    server.start();
    try (PrintStream handover =
        new PrintStream(new FileOutputStream(arguments[0]), true, StandardCharsets.UTF_8)) {
      handover.println(server.getListeningPort() + " " + server.secret());
    }
    awaitEndOfInput();
    Runtime.getRuntime().halt(0);
  }

  private static void awaitEndOfInput() {
    try {
      while (System.in.read() != -1) {
        // Input is ignored; only its end matters.
      }
    } catch (IOException brokenPipe) {
      // A broken pipe counts as the end of input.
    }
  }
}

package dev.tandem.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** The offset after an epoch: the epoch's number. */
final class EpochOffset extends Offset {
  private static final Pattern JSON = Pattern.compile("\\{\\s*\"epoch\"\\s*:\\s*(-?\\d+)\\s*}");

  final long epoch;

  EpochOffset(long epoch) {
    this.epoch = epoch;
  }

  static EpochOffset parse(String json) {
    Matcher match = JSON.matcher(json.strip());
    if (!match.matches()) {
      throw new IllegalArgumentException("not the offset of an epoch: " + json);
    }
    return new EpochOffset(Long.parseLong(match.group(1)));
  }

  @Override
  public String json() {
    return "{\"epoch\":" + epoch + "}";
  }
}

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * Prints vectors.json: key hashes computed by Spark's own XXH64, following the table in
 * tandem_core/routing/key_hashing.py and sharing no code with it. How to run it: README.md beside this file.
 */
public final class GoldenVectors {
  private static final long SEED = 42L;
  private static final StringBuilder OUT = new StringBuilder();

  private static long ofLong(long value) {
    return XXH64.hashLong(value, SEED);
  }

  private static long ofBytes(byte[] value) {
    return XXH64.hashUnsafeBytes(value, Platform.BYTE_ARRAY_OFFSET, value.length, SEED);
  }

  private static long ofDecimal(BigInteger unscaled) {
    if (unscaled.bitLength() < 64) {
      return ofLong(unscaled.longValueExact());
    }
    ByteBuffer bytes = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(unscaled.longValue()).putLong(unscaled.shiftRight(64).longValueExact());
    return ofBytes(bytes.array());
  }

  private static long chain(long... columns) {
    long hash = columns[0];
    for (int i = 1; i < columns.length; i++) {
      hash = XXH64.hashLong(columns[i], hash);
    }
    return hash;
  }

  private static void emit(String kind, String value, long hash) {
    OUT.append(OUT.isEmpty() ? "[\n" : ",\n");
    OUT.append(String.format("  [\"%s\", %s, \"%016x\"]", kind, value, hash));
  }

  private static String quoted(String value) {
    return "\"" + value + "\"";
  }

  public static void main(String[] arguments) {
    for (long value : new long[] {0, 1, -1, 42, 127, -128, 32767, -32768, 2147483647L,
        -2147483648L, 4294967295L, 1234567890123456789L, Long.MAX_VALUE, Long.MIN_VALUE}) {
      emit("integer", Long.toString(value), ofLong(value));
    }
    emit("boolean", "false", ofLong(0));
    emit("boolean", "true", ofLong(1));
    for (String day : new String[] {"1970-01-01", "1969-12-31", "2024-02-29", "0001-01-01",
        "9999-12-31"}) {
      emit("date", quoted(day), ofLong(LocalDate.parse(day).toEpochDay()));
    }
    for (String instant : new String[] {"1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z",
        "2024-02-29T12:34:56.789012Z", "2038-01-19T03:14:08Z", "1900-01-01T00:00:00.000001Z"}) {
      long micros = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.parse(instant));
      emit("timestamp", quoted(instant), ofLong(micros));
    }
    for (String digits : new String[] {"0", "1", "-1", "999999999999999999", "9223372036854775807",
        "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
        "18446744073709551616", "99999999999999999999999999999999999999",
        "-99999999999999999999999999999999999999"}) {
      emit("decimal", quoted(digits), ofDecimal(new BigInteger(digits)));
    }
    StringBuilder growing = new StringBuilder();
    for (int length = 0; length <= 72; length++) {
      emit("string", quoted(growing.toString()), ofBytes(growing.toString().getBytes(
          StandardCharsets.UTF_8)));
      growing.append((char) ('a' + length % 26));
    }
    for (String text : new String[] {"user-00000001", "Zürich", "naïve", "日本語", "🙂🙃"}) {
      emit("string", quoted(text), ofBytes(text.getBytes(StandardCharsets.UTF_8)));
    }
    byte[] every = new byte[256];
    for (int i = 0; i < every.length; i++) {
      every[i] = (byte) i;
    }
    emit("binary", quoted(HexFormat.of().formatHex(every)), ofBytes(every));
    emit("binary", quoted("00"), ofBytes(new byte[1]));
    emit("binary", quoted("ff00ff"), ofBytes(new byte[] {-1, 0, -1}));
    long text = ofBytes("a".getBytes(StandardCharsets.UTF_8));
    emit("key", "[\"a\", 1]", chain(text, ofLong(1)));
    emit("key", "[1, \"a\"]", chain(ofLong(1), text));
    emit("key", "[\"a\", null]", chain(text, SEED));
    emit("key", "[null, \"a\"]", chain(SEED, text));
    emit("key", "[null]", SEED);
    emit("key", "[null, null]", chain(SEED, SEED));
    emit("key", "[\"a\", 1, true]", chain(text, ofLong(1), ofLong(1)));
    System.out.println(OUT.append("\n]"));
  }
}

package dev.tandem.spark;

import java.lang.reflect.Field;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A Spark context that does not check closures.
 *
 * <p>Outside a Scala shell the check changes nothing: it reads the class of each closure from its
 * jar to look for return statements, and serializes each closure as a test. A query from Python has
 * only Spark's own closures, so it finds nothing, but takes a third of the time of a small
 * micro-batch.
 */
public final class TrustingContext extends SparkContext {
  private TrustingContext(SparkConf conf) {
    super(conf);
  }

  /** Starts a context, wrapped as Python expects it. */
  public static JavaSparkContext start(SparkConf conf) throws ReflectiveOperationException {
    TrustingContext context = new TrustingContext(conf);
    forgetOrigins(context.hadoopConfiguration());
    return new JavaSparkContext(context);
  }

  /**
   * Removes the origin of each of Hadoop's settings, the file that it comes from.
   *
   * <p>Every stateful operator sends all settings to its tasks in every micro-batch, and each of a
   * thousand origins is compressed separately.
   */
  private static void forgetOrigins(Configuration settings) throws ReflectiveOperationException {
    // Loading a class with its own settings files makes every Configuration reload; so do it now.
    HdfsConfiguration.init();
    settings.size(); // Reads the files, which happens only on first use.
    Field origins = Configuration.class.getDeclaredField("updatingResource");
    origins.setAccessible(true);
    origins.set(settings, null);
  }

  @Override
  public <F> F clean(F closure, boolean checkSerializable) {
    return closure;
  }
}

package dev.tandem.spark;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * A local file system that sets no permissions: files get those of the process's umask.
 *
 * <p>Without Hadoop's native library the default one starts a {@code chmod} process for every file
 * it creates, which costs more than the rest of a small micro-batch.
 */
public final class QuietFileSystem extends LocalFileSystem {
  public QuietFileSystem() {
    super(new Raw());
  }

  @Override
  public void setPermission(Path path, FsPermission permission) {}

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) {}
  }
}

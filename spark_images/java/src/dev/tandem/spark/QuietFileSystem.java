package dev.tandem.spark;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system without permissions: files get those of the process's umask.
 *
 * <p>Without Hadoop's native library the stock one starts a {@code chmod} for every file it makes,
 * which costs more than everything else that a small micro-batch does.
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

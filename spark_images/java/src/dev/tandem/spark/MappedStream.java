package dev.tandem.spark;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.ForeignAllocation;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.spark.storage.StorageUtils;

/**
 * Reads an Arrow IPC stream from a file without copying: the vectors point into the mapped file.
 *
 * <p>The stream must be uncompressed, without dictionaries, and smaller than 2 GiB. The vectors of
 * {@link #root} are valid until the next call of {@link #next} or {@link #close}; the file is
 * unmapped when the last vector has released it.
 */
final class MappedStream implements AutoCloseable {
  private static final int CONTINUATION = 0xFFFFFFFF;

  private final ByteBuffer bytes;
  private final ArrowBuf memory;
  private final VectorSchemaRoot root;
  private final VectorLoader loader;
  private boolean closed;

  MappedStream(Path file, BufferAllocator allocator) throws IOException {
    MappedByteBuffer mapped;
    try (FileChannel channel = FileChannel.open(file)) {
      mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
    }
    bytes = mapped.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    memory = allocator.wrapForeignAllocation(new MappedFile(mapped));
    try {
      Message message = nextMessage();
      if (message == null || message.headerType() != MessageHeader.Schema) {
        throw new IOException(file + " does not begin with a schema");
      }
      root = VectorSchemaRoot.create(MessageSerializer.deserializeSchema(message), allocator);
    } catch (IOException | RuntimeException error) {
      memory.close();
      throw error;
    }
    loader = new VectorLoader(root);
  }

  VectorSchemaRoot root() {
    return root;
  }

  /** Loads the next record batch into the root; returns whether there was one. */
  boolean next() throws IOException {
    Message message = nextMessage();
    if (message == null) {
      return false;
    }
    if (message.headerType() != MessageHeader.RecordBatch) {
      throw new IOException("a record batch was expected, not " + message.headerType());
    }
    ArrowBuf body = memory.slice(bytes.position(), message.bodyLength());
    bytes.position(bytes.position() + Math.toIntExact(message.bodyLength()));
    // Deserializing takes over one reference to the body.
    body.getReferenceManager().retain();
    try (ArrowRecordBatch batch = MessageSerializer.deserializeRecordBatch(message, body)) {
      loader.load(batch);
    }
    return true;
  }

  /** Reads a message's metadata and stops before its body; null at the end of the stream. */
  private Message nextMessage() throws IOException {
    if (bytes.remaining() < 2 * Integer.BYTES || bytes.getInt() != CONTINUATION) {
      throw new EOFException("the stream breaks off or is of an old format");
    }
    int length = bytes.getInt();
    if (length == 0) {
      return null;
    }
    ByteBuffer metadata = bytes.slice(bytes.position(), length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.position(bytes.position() + length);
    return Message.getRootAsMessage(metadata);
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      root.close();
      memory.close();
    }
  }

  /** Mapped memory that is released at once, not by the garbage collector. */
  private static final class MappedFile extends ForeignAllocation {
    private final MappedByteBuffer mapped;

    MappedFile(MappedByteBuffer mapped) {
      super(mapped.capacity(), MemoryUtil.getByteBufferAddress(mapped));
      this.mapped = mapped;
    }

    @Override
    protected void release0() {
      StorageUtils.dispose(mapped);
    }
  }
}

package dev.tandem.spark;

import java.util.Arrays;

/**
 * The keys of one pair: its buckets and hot keys, without others' hot keys in its buckets.
 *
 * <p>The counterpart of {@code tandem_core.routing.function.OwnedKeys}.
 *
 * @param buckets a bit for each bucket, the first in the highest bit of the first byte
 * @param hot hashes of the pair's hot keys
 * @param foreign hashes of hot keys in its buckets that belong to other pairs
 */
record KeyShare(byte[] buckets, long[] hot, long[] foreign) {
  private static final int BUCKET_BITS = 16;

  KeyShare {
    if (buckets.length != (1 << BUCKET_BITS) / Byte.SIZE) {
      throw new IllegalArgumentException(buckets.length + " bytes are not a set of all buckets");
    }
    hot = sorted(hot);
    foreign = sorted(foreign);
  }

  /** Returns whether the pair owns the key with this hash. */
  boolean holds(long hash) {
    if (Arrays.binarySearch(foreign, hash) >= 0) {
      return false;
    }
    int bucket = (int) (hash >>> (Long.SIZE - BUCKET_BITS));
    boolean inBucket = (buckets[bucket / Byte.SIZE] & (0x80 >>> (bucket % Byte.SIZE))) != 0;
    return inBucket || Arrays.binarySearch(hot, hash) >= 0;
  }

  private static long[] sorted(long[] hashes) {
    long[] copy = hashes.clone();
    Arrays.sort(copy);
    return copy;
  }
}

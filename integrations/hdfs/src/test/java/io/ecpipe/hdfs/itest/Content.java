// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs.itest;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;

/** The bytes of a test file: a function of a seed and the offset, so that nobody keeps them. */
final class Content {
  private static final int PIECE_BYTES = 1 << 20;

  private Content() {}

  private static long mix(long value) {
    long z = value * 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  static void fill(long seed, long offset, byte[] buffer, int length) {
    long word = 0;
    for (int i = 0; i < length; i++) {
      long at = offset + i;
      if (i == 0 || (at & 7) == 0) {
        word = mix(seed * 1_000_003 + (at >> 3));
      }
      buffer[i] = (byte) (word >>> ((at & 7) * 8));
    }
  }

  /** Whether the buffer holds the file's bytes from `offset` on. */
  static boolean matches(long seed, long offset, byte[] buffer, int length) {
    byte[] expected = new byte[Math.min(PIECE_BYTES, length)];
    for (int at = 0; at < length; at += PIECE_BYTES) {
      int count = Math.min(PIECE_BYTES, length - at);
      fill(seed, offset + at, expected, count);
      if (!Arrays.equals(expected, 0, count, buffer, at, at + count)) {
        return false;
      }
    }
    return true;
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.lang.reflect.Constructor;
import java.util.zip.Checksum;

/** CRC32C: the JDK's own, which uses the processor's instruction, or a table on JDK 8. */
final class Checksums {
  private static final Constructor<?> JDK_CRC32C = findJdkClass();
  private static final int POLYNOMIAL = 0x82F63B78;  // Castagnoli's, bits reversed
  private static final int[] TABLE = makeTable();

  private Checksums() {}

  /** Of `length` bytes from `offset` on. */
  static int crc32c(byte[] bytes, int offset, int length) {
    if (JDK_CRC32C == null) {
      return tableCrc32c(bytes, offset, length);
    }
    try {
      Checksum checksum = (Checksum) JDK_CRC32C.newInstance();
      checksum.update(bytes, offset, length);
      return (int) checksum.getValue();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("java.util.zip.CRC32C cannot be made", e);
    }
  }

  static int tableCrc32c(byte[] bytes, int offset, int length) {
    int crc = ~0;
    for (int i = offset; i < offset + length; i++) {
      crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[i]) & 0xFF];
    }
    return ~crc;
  }

  private static Constructor<?> findJdkClass() {
    try {
      return Class.forName("java.util.zip.CRC32C").getConstructor();
    } catch (ReflectiveOperationException e) {
      return null;  // JDK 8
    }
  }

  private static int[] makeTable() {
    int[] table = new int[256];
    for (int i = 0; i < table.length; i++) {
      int crc = i;
      for (int bit = 0; bit < 8; bit++) {
        crc = (crc & 1) != 0 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
      }
      table[i] = crc;
    }
    return table;
  }
}

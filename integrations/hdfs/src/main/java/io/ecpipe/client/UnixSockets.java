// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;

/** Unix sockets of somebody else than the JDK, with calls that block. Thread-safe. */
public interface UnixSockets {
  /** What connect() lacks here, such as a library and why it is not there; null: nothing. */
  String missing();

  /** Connects to the socket at an absolute path, however long that takes. */
  Socket connect(String path) throws IOException;

  /**
   * What a write may hand over at once. Linux puts so much into a Unix socket as one piece or not
   * at all: it divides only what is longer than half of the send buffer less 64 bytes, and the
   * smallest buffer that it allows is 4,608 bytes.
   */
  int MAX_WRITE_BYTES = 2 << 10;

  /** One thread reads and writes; close() may come from any thread. */
  interface Socket extends Closeable {
    /**
     * Reads what is there, and waits for it up to `millis`, at least 1. The number of bytes; 0 when
     * none came in time, -1 at the end. ClosedChannelException once close() was called.
     */
    int read(ByteBuffer bytes, int millis) throws IOException;

    /**
     * Writes all, at most MAX_WRITE_BYTES, and waits for room up to `millis`, at least 1. False
     * when none came in time: then nothing was written. ClosedChannelException as from read().
     */
    boolean write(byte[] bytes, int offset, int length, int millis) throws IOException;

    /** Ends a wait of another thread at once. A second call does nothing. */
    @Override
    void close() throws IOException;
  }
}

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

  /** One thread reads and writes; close() may come from any thread. */
  interface Socket extends Closeable {
    /**
     * Reads what is there, and waits for it up to `millis`, at least 1. The number of bytes; 0 when
     * none came in time, -1 at the end. ClosedChannelException once close() was called.
     */
    int read(ByteBuffer bytes, int millis) throws IOException;

    /**
     * Writes all. SocketTimeoutException when the peer takes nothing for `millis`, at least 1; how
     * much it took before is unknown then. ClosedChannelException as from read().
     */
    void write(byte[] bytes, int offset, int length, int millis) throws IOException;

    /** Ends a wait of another thread at once. A second call does nothing. */
    @Override
    void close() throws IOException;
  }
}

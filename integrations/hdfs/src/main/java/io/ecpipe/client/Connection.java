// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * A connection whose every wait ends at a deadline, with a SocketTimeoutException. One thread uses
 * it, and an interrupt of that thread ends its wait; close() may come from any thread and ends a
 * wait at once.
 */
interface Connection extends Closeable {
  void write(ByteBuffer bytes, Deadline deadline) throws IOException;

  /** Fills the buffer. EOFException when the peer closes before. */
  void read(ByteBuffer bytes, Deadline deadline) throws IOException;
}

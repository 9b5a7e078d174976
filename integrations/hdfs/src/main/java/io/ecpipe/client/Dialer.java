// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;

/**
 * Connects to an endpoint in the way that this JVM has. The JDK's own sockets go first: a selector
 * waits for them, so an interrupt is heard at once, and no thread has to wait in connect().
 */
interface Dialer {
  /** By the deadline, or SocketTimeoutException. The caller closes the connection. */
  Connection open(Deadline deadline) throws IOException;

  /**
   * `others` may be null: none. IllegalArgumentException when neither the JDK nor they have Unix
   * sockets and the address needs one.
   */
  static Dialer of(EndpointAddress address, UnixSockets others, boolean jdkHasUnixSockets) {
    if (!address.isUnix() || jdkHasUnixSockets) {
      return deadline -> ChannelConnection.open(address, deadline);
    }
    String missing = others == null ? "other Unix sockets" : others.missing();
    if (missing != null) {
      throw new IllegalArgumentException(address + " needs JDK 16 or newer, or " + missing
          + ". Without either, let the endpoint listen on tcp:host:port with a cookie file, and"
          + " name that file to the client");
    }
    return deadline -> BlockingConnection.open(address, others, deadline);
  }
}

// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.nio.channels.SocketChannel;

/**
 * Where a requestor endpoint listens: `unix:/path` or `tcp:host:port`. TCP is plain, so only
 * loopback addresses are taken. Immutable.
 */
public final class EndpointAddress {
  private static final String UNIX = "unix:";
  private static final String TCP = "tcp:";

  /** JDK 16 and newer. */
  static final boolean JDK_HAS_UNIX_SOCKETS = hasClass("java.net.UnixDomainSocketAddress");

  private final String text;

  private EndpointAddress(String text) {
    this.text = text;
  }

  /** Throws IllegalArgumentException, which says what is wrong. Resolves no name. */
  public static EndpointAddress parse(String text) {
    if (text.startsWith(UNIX + "/")) {
      return new EndpointAddress(text);
    }
    if (text.startsWith(TCP)) {
      int colon = text.lastIndexOf(':');
      try {
        int port = Integer.parseInt(text.substring(colon + 1));
        if (colon > TCP.length() && port > 0 && port < 65536) {
          return new EndpointAddress(text);
        }
      } catch (NumberFormatException e) {
        // Falls through to the message that covers all of these.
      }
    }
    throw new IllegalArgumentException(
        "endpoint address '" + text + "' is neither unix:/path nor tcp:host:port");
  }

  private static boolean hasClass(String name) {
    try {
      Class.forName(name);
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  boolean isUnix() {
    return text.startsWith(UNIX);
  }

  /** Of the socket; only when isUnix(). */
  String path() {
    return text.substring(UNIX.length());
  }

  /** Opens an unconnected channel of the right family. */
  SocketChannel openChannel() throws IOException {
    if (!isUnix()) {
      return SocketChannel.open();
    }
    try {
      return (SocketChannel) SocketChannel.class.getMethod("open", ProtocolFamily.class)
          .invoke(null, StandardProtocolFamily.valueOf("UNIX"));
    } catch (ReflectiveOperationException | IllegalArgumentException e) {
      throw new IOException("this JDK has no Unix sockets for " + text, e);
    }
  }

  SocketAddress socketAddress() throws IOException {
    if (!isUnix()) {
      return tcpAddress();
    }
    try {
      return (SocketAddress) Class.forName("java.net.UnixDomainSocketAddress")
          .getMethod("of", String.class).invoke(null, path());
    } catch (ReflectiveOperationException e) {
      throw new IOException("this JDK has no Unix sockets for " + text, e);
    }
  }

  private SocketAddress tcpAddress() throws IOException {
    int colon = text.lastIndexOf(':');
    String host = text.substring(TCP.length(), colon);
    InetAddress address = InetAddress.getByName(host);
    if (!address.isLoopbackAddress()) {
      throw new IOException(text + ": plain TCP is allowed to loopback addresses only");
    }
    return new InetSocketAddress(address, Integer.parseInt(text.substring(colon + 1)));
  }

  @Override
  public String toString() {
    return text;
  }
}

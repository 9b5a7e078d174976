// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * A connection by the JDK's own sockets. Its Unix sockets have no other way to time out than a
 * selector.
 */
final class ChannelConnection implements Connection {
  private final EndpointAddress address;
  private final SocketChannel channel;
  private final Selector selector;
  private SelectionKey key;

  private ChannelConnection(EndpointAddress address, SocketChannel channel, Selector selector) {
    this.address = address;
    this.channel = channel;
    this.selector = selector;
  }

  static ChannelConnection open(EndpointAddress address, Deadline deadline) throws IOException {
    SocketChannel channel = address.openChannel();
    ChannelConnection connection = null;
    try {
      channel.configureBlocking(false);
      connection = new ChannelConnection(address, channel, Selector.open());
      connection.connect(deadline);
      return connection;
    } catch (IOException | RuntimeException e) {
      if (connection == null) {
        channel.close();
      } else {
        connection.close();
      }
      throw e;
    }
  }

  private void connect(Deadline deadline) throws IOException {
    key = channel.register(selector, 0);
    if (channel.connect(address.socketAddress())) {
      return;
    }
    do {
      await(SelectionKey.OP_CONNECT, deadline);
    } while (!channel.finishConnect());
  }

  @Override
  public void write(ByteBuffer bytes, Deadline deadline) throws IOException {
    while (bytes.hasRemaining()) {
      if (channel.write(bytes) == 0) {
        await(SelectionKey.OP_WRITE, deadline);
      }
    }
  }

  @Override
  public void read(ByteBuffer bytes, Deadline deadline) throws IOException {
    while (bytes.hasRemaining()) {
      int count = channel.read(bytes);
      if (count < 0) {
        throw new EOFException(address + " closed the connection within a repair");
      }
      if (count == 0) {
        await(SelectionKey.OP_READ, deadline);
      }
    }
  }

  private void await(int operation, Deadline deadline) throws IOException {
    long millis = deadline.remainingMillis();
    if (millis == 0) {
      throw new SocketTimeoutException(address + " did not answer in time");
    }
    try {
      key.interestOps(operation);
      selector.select(millis);
      selector.selectedKeys().clear();
    } catch (ClosedSelectorException | CancelledKeyException e) {
      throw new IOException("the repair was cancelled", e);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedIOException("interrupted while a repair ran");
    }
  }

  @Override
  public void close() throws IOException {
    // Closing the selector wakes up who waits in it.
    try {
      selector.close();
    } finally {
      channel.close();
    }
  }
}

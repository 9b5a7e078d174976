// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A connection by sockets with calls that block. */
final class BlockingConnection implements Connection {
  /** How long one call waits: an interrupt is heard between two of them. */
  private static final int TURN_MILLIS = 100;
  /**
   * connect() waits for as long as the endpoint's queue is full, whatever the deadline, and nothing
   * ends it. So threads of ours wait in it. An endpoint that has stopped takes all of them; then
   * each caller still waits no longer than to its own deadline.
   */
  private static final int CONNECT_THREADS = 4;
  /** Each that waits has a thread of its own, so this is never reached by a sane process. */
  private static final int CONNECT_QUEUE = 1024;
  private static final ThreadPoolExecutor CONNECTS =
      Daemons.pool("ecpipe-connect", CONNECT_THREADS, CONNECT_QUEUE);

  private final EndpointAddress address;
  private final UnixSockets.Socket socket;

  private BlockingConnection(EndpointAddress address, UnixSockets.Socket socket) {
    this.address = address;
    this.socket = socket;
  }

  static BlockingConnection open(EndpointAddress address, UnixSockets sockets, Deadline deadline)
      throws IOException {
    CompletableFuture<UnixSockets.Socket> opened = new CompletableFuture<>();
    Runnable connect = () -> connect(address, sockets, opened);
    try {
      CONNECTS.execute(connect);
      return new BlockingConnection(address,
          opened.get(deadline.remainingMillis(), TimeUnit.MILLISECONDS));
    } catch (RejectedExecutionException e) {
      throw new IOException("too many threads wait for a connection to " + address, e);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof IOException ? (IOException) e.getCause()
          : new IOException("cannot connect to " + address, e.getCause());
    } catch (TimeoutException e) {
      abandon(connect, opened);
      throw late(address);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      abandon(connect, opened);
      throw interrupted();
    }
  }

  private static void connect(EndpointAddress address, UnixSockets sockets,
      CompletableFuture<UnixSockets.Socket> opened) {
    if (opened.isDone()) {
      return;  // nobody waits any more
    }
    try {
      UnixSockets.Socket socket = sockets.connect(address.path());
      if (!opened.complete(socket)) {
        socket.close();
      }
    } catch (Throwable e) {
      opened.completeExceptionally(e);
    }
  }

  /** Whichever thread comes second closes the socket: this one, or the one that connects. */
  private static void abandon(Runnable connect, CompletableFuture<UnixSockets.Socket> opened) {
    CONNECTS.remove(connect);
    if (opened.cancel(false) || opened.isCompletedExceptionally()) {
      return;
    }
    try {
      opened.join().close();
    } catch (IOException e) {
      return;  // the caller hears why it gave up
    }
  }

  @Override
  public void write(ByteBuffer bytes, Deadline deadline) throws IOException {
    while (bytes.hasRemaining()) {
      int count = Math.min(bytes.remaining(), UnixSockets.MAX_WRITE_BYTES);
      int from = bytes.arrayOffset() + bytes.position();
      try {
        if (socket.write(bytes.array(), from, count, turnMillis(deadline))) {
          bytes.position(bytes.position() + count);
        }
      } catch (ClosedChannelException e) {
        throw cancelled(e);
      }
    }
  }

  @Override
  public void read(ByteBuffer bytes, Deadline deadline) throws IOException {
    while (bytes.hasRemaining()) {
      int count;
      try {
        count = socket.read(bytes, turnMillis(deadline));
      } catch (ClosedChannelException e) {
        throw cancelled(e);
      }
      if (count < 0) {
        throw new EOFException(address + " closed the connection within a repair");
      }
    }
  }

  /** At least 1. */
  private int turnMillis(Deadline deadline) throws IOException {
    if (Thread.currentThread().isInterrupted()) {
      throw interrupted();
    }
    long millis = deadline.remainingMillis();
    if (millis == 0) {
      throw late(address);
    }
    return (int) Math.min(millis, TURN_MILLIS);
  }

  private static SocketTimeoutException late(EndpointAddress address) {
    return new SocketTimeoutException(address + " did not answer in time");
  }

  private static InterruptedIOException interrupted() {
    return new InterruptedIOException("interrupted while a repair ran");
  }

  private static IOException cancelled(ClosedChannelException cause) {
    return new IOException("the repair was cancelled", cause);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}

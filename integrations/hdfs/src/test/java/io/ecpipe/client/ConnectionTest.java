// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** With an endpoint that never takes its connections, as one does that was stopped. */
public class ConnectionTest extends EachWay {
  private static final int LONG_MILLIS = 60_000;

  private Path path;
  private EndpointAddress address;
  private ServerSocketChannel server;

  @Before
  public void listen() throws IOException {
    path = Files.createTempDirectory("ecpipe-stopped-").resolve("socket");
    address = EndpointAddress.parse("unix:" + path);
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(path));
  }

  @After
  public void close() throws IOException {
    server.close();
    Files.delete(path);
    Files.delete(path.getParent());
  }

  @Test
  public void aReadEndsAtItsDeadline() throws IOException {
    try (Connection connection = connect(address, Deadline.after(LONG_MILLIS))) {
      Deadline deadline = Deadline.after(150);
      assertThrows(SocketTimeoutException.class,
          () -> connection.read(ByteBuffer.allocate(1), deadline));
      assertTrue("not before", deadline.remainingMillis() == 0);
    }
  }

  @Test
  public void aWriteEndsAtItsDeadline() throws IOException {
    try (Connection connection = connect(address, Deadline.after(LONG_MILLIS))) {
      Deadline deadline = Deadline.after(150);
      assertThrows(SocketTimeoutException.class,
          () -> connection.write(ByteBuffer.allocate(16 << 20), deadline));
      assertTrue("not before", deadline.remainingMillis() == 0);
    }
  }

  /** However little time each of its bytes waits. */
  @Test
  public void aWriteToASlowReaderEndsAtItsDeadline() throws Exception {
    Thread slow = new Thread(() -> {
      ByteBuffer some = ByteBuffer.allocate(64 << 10);
      try (SocketChannel channel = server.accept()) {
        while (channel.read(some.clear()) >= 0) {
          Thread.sleep(20);
        }
      } catch (IOException | InterruptedException e) {
        return;
      }
    });
    slow.start();
    try (Connection connection = connect(address, Deadline.after(LONG_MILLIS))) {
      Deadline deadline = Deadline.after(150);
      assertThrows(SocketTimeoutException.class,
          () -> connection.write(ByteBuffer.allocate(16 << 20), deadline));
    }
    slow.join();
  }

  /** By an endpoint that reads no request first, and has gone when the request is sent. */
  @Test
  public void whoMayNotAskIsToldSo() throws IOException {
    Connection connection = connect(address, Deadline.after(LONG_MILLIS));
    try (SocketChannel channel = server.accept()) {
      channel.write(Frame.encode(Frame.ERROR,
          "code PERMISSION_DENIED\nmessage user 7\n".getBytes(StandardCharsets.US_ASCII)));
    }
    FailureCache failures = new FailureCache(LONG_MILLIS);
    RepairRequest request = RepairClientTest.facts().target(0, 0, 1).build();
    try (RepairStream stream = new RepairStream(
        connection, request, LONG_MILLIS, Deadline.after(LONG_MILLIS), failures)) {
      stream.send(new byte[1]);
      RepairException error = assertThrows(RepairException.class, stream::awaitHeader);
      assertEquals("PERMISSION_DENIED: user 7", error.getMessage());
      assertEquals("what the write met is kept", 1, error.getSuppressed().length);
    }
    assertFalse("nor are others tried soon", failures.looksAlive());
  }

  /** Where the reader lets it wait in vain several times. */
  @Test
  public void aWriteThatWaitsSendsEachByteOnce() throws Exception {
    byte[] sent = new byte[1 << 20];
    new Random(7).nextBytes(sent);
    ByteBuffer received = ByteBuffer.allocate(sent.length);
    Thread late = new Thread(() -> {
      try (SocketChannel channel = server.accept()) {
        for (int half = 1; half <= 2; half++) {
          Thread.sleep(300);
          received.limit(half * sent.length / 2);
          while (received.hasRemaining() && channel.read(received) >= 0) {
          }
        }
      } catch (IOException | InterruptedException e) {
        return;
      }
    });
    late.start();
    try (Connection connection = connect(address, Deadline.after(LONG_MILLIS))) {
      connection.write(ByteBuffer.wrap(sent), Deadline.after(LONG_MILLIS));
    }
    late.join();
    assertArrayEquals(sent, received.array());
  }

  @Test
  public void anInterruptEndsARead() throws Exception {
    try (Connection connection = connect(address, Deadline.after(LONG_MILLIS))) {
      anInterruptEnds(deadline -> connection.read(ByteBuffer.allocate(1), deadline));
    }
  }

  @Test
  public void anInterruptEndsAWrite() throws Exception {
    try (Connection connection = connect(address, Deadline.after(LONG_MILLIS))) {
      ByteBuffer bytes = ByteBuffer.allocate(16 << 20);
      assertThrows("the socket is full", SocketTimeoutException.class,
          () -> connection.write(bytes, Deadline.after(100)));
      anInterruptEnds(deadline -> connection.write(bytes, deadline));
    }
  }

  private interface Wait {
    void until(Deadline deadline) throws IOException;
  }

  private static void anInterruptEnds(Wait wait) throws Exception {
    Deadline deadline = Deadline.after(LONG_MILLIS);
    Thread waiter = Thread.currentThread();
    Thread other = new Thread(() -> {
      while (!waits(waiter) && deadline.remainingMillis() > 0) {
        Thread.yield();
      }
      waiter.interrupt();
    });
    other.start();
    IOException error = assertThrows(IOException.class, () -> wait.until(deadline));
    assertTrue("the interrupt is kept for the caller", Thread.interrupted());
    assertFalse(error.toString(), error instanceof SocketTimeoutException);
    assertTrue("long before the deadline", deadline.remainingMillis() > 0);
    other.join();
  }

  /** Whether the thread is in the kernel: of a selector, or of Hadoop. */
  private static boolean waits(Thread thread) {
    String method = thread.getStackTrace()[0].getMethodName();
    return Arrays.asList("wait", "readArray0", "writeArray0").contains(method);
  }
}

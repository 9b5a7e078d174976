// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.Test;

/** Which way is taken, and what a connect() costs that does not come back. */
public class DialerTest {
  private static final EndpointAddress UNIX = EndpointAddress.parse("unix:/absent/socket");
  private static final EndpointAddress TCP = EndpointAddress.parse("tcp:127.0.0.1:1");

  /** Its connect() comes back when the test says so. */
  private static class Stuck implements UnixSockets, UnixSockets.Socket {
    final CountDownLatch mayGo = new CountDownLatch(1);
    final Semaphore begun = new Semaphore(0);
    final AtomicInteger begunEver = new AtomicInteger();
    final Semaphore closed = new Semaphore(0);

    @Override
    public String missing() {
      return null;
    }

    @Override
    public Socket connect(String path) throws IOException {
      begunEver.incrementAndGet();
      begun.release();
      try {
        mayGo.await();
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
      return this;
    }

    @Override
    public int read(ByteBuffer bytes, int millis) {
      throw new AssertionError();
    }

    @Override
    public boolean write(byte[] bytes, int offset, int length, int millis) {
      throw new AssertionError();
    }

    @Override
    public void close() throws IOException {
      closed.release();
    }
  }

  private static UnixSockets lacking(String what) {
    return new UnixSockets() {
      @Override
      public String missing() {
        return what;
      }

      @Override
      public Socket connect(String path) {
        throw new UnsatisfiedLinkError("no connect() here");
      }
    };
  }

  @Test
  public void withoutAnyUnixSocketsTheCookieIsNamed() {
    for (UnixSockets others : new UnixSockets[] {null, lacking("libx")}) {
      String message = assertThrows(IllegalArgumentException.class,
          () -> Dialer.of(UNIX, others, false)).getMessage();
      assertTrue(message, message.startsWith(UNIX + " needs JDK 16 or newer"));
      assertTrue(message, message.contains(
          "Without either, let the endpoint listen on tcp:host:port with a cookie file"));
      assertEquals(message, others != null, message.contains("libx"));
      Dialer.of(TCP, others, false);
    }
  }

  @Test
  public void theJdksOwnSocketsGoFirst() {
    Stuck others = new Stuck();
    assertThrows(IOException.class, () -> Dialer.of(UNIX, others, true).open(Deadline.after(5000)));
    assertThrows(IOException.class, () -> Dialer.of(TCP, others, false).open(Deadline.after(5000)));
    assertEquals(0, others.begunEver.get());
  }

  @Test
  public void aLibraryThatIsBrokenIsAnIoException() {
    IOException error = assertThrows(IOException.class,
        () -> Dialer.of(UNIX, lacking(null), false).open(Deadline.after(60_000)));
    assertTrue(error.toString(), error.getCause() instanceof UnsatisfiedLinkError);
  }

  /** Nobody waits longer than to the deadline, and what connects later than that is closed. */
  @Test(timeout = 60_000)
  public void aConnectThatHangsHoldsAFewThreadsAndNoCaller() throws Exception {
    Stuck others = new Stuck();
    Dialer dialer = Dialer.of(UNIX, others, false);
    for (int more = 10; more > 0; more -= others.begunEver.get() > 0 ? 1 : 0) {
      assertThrows(SocketTimeoutException.class, () -> dialer.open(Deadline.after(50)));
    }
    int hanging = others.begunEver.get();
    assertTrue(hanging + " hang", hanging <= 4);
    others.mayGo.countDown();
    assertTrue(others.closed.tryAcquire(hanging, 10, TimeUnit.SECONDS));
    dialer.open(Deadline.after(60_000)).close();
  }

  @Test
  public void anInterruptEndsAConnect() throws Exception {
    Stuck others = new Stuck();
    List<Throwable> errors = new ArrayList<>();
    Thread caller = new Thread(() -> {
      errors.add(assertThrows(InterruptedIOException.class,
          () -> Dialer.of(UNIX, others, false).open(Deadline.after(600_000))));
      errors.add(Thread.interrupted() ? null : new AssertionError("the interrupt was lost"));
    });
    caller.start();
    assertTrue(others.begun.tryAcquire(10, TimeUnit.SECONDS));
    caller.interrupt();
    caller.join(60_000);
    assertFalse(caller.isAlive());
    assertFalse(errors.get(0) instanceof SocketTimeoutException);
    assertEquals(null, errors.get(1));
    others.mayGo.countDown();
    assertTrue(others.closed.tryAcquire(10, TimeUnit.SECONDS));
  }

  /** Also of a connection that comes at the same time, and cannot be closed. */
  @Test(timeout = 60_000)
  public void anInterruptIsKeptWhateverCloseSays() throws Exception {
    Thread caller = Thread.currentThread();
    Dialer dialer = Dialer.of(UNIX, new Stuck() {
      @Override
      public Socket connect(String path) {
        while (caller.getState() != Thread.State.TIMED_WAITING) {
          Thread.yield();
        }
        caller.interrupt();
        return this;
      }

      @Override
      public void close() throws IOException {
        throw new IOException("cannot be closed");
      }
    }, false);
    for (int round = 0; round < 20; round++) {  // in some of them the connection comes first
      assertThrows(InterruptedIOException.class, () -> dialer.open(Deadline.after(600_000)));
      assertTrue("the interrupt is kept for the caller", Thread.interrupted());
    }
  }
}

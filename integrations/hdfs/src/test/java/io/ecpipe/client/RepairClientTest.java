// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

public class RepairClientTest extends EachWay {
  private static final int BYTES = 3_000_001;
  private static final byte[] CONTENT = new byte[BYTES];

  static {
    new Random(7).nextBytes(CONTENT);
  }

  static RepairRequest.Builder facts() {
    return new RepairRequest.Builder().group("BP-1", -9223372036854775792L, 1001, 17_000_000)
        .policy("rs", 6, 3, 1 << 20).source(1, "uuid-1").source(8, "uuid-8");
  }

  private static RepairRequest request() {
    return facts().target(0, 0, BYTES).build();
  }

  private static void sendAll(FakeEndpoint.Peer peer) throws IOException {
    peer.header(BYTES);
    for (int at = 0; at < BYTES; at += 1 << 20) {
      peer.data(Arrays.copyOfRange(CONTENT, at, Math.min(BYTES, at + (1 << 20))));
    }
    peer.end(BYTES);
  }

  /** Reads a whole repair from an endpoint that answers so, and expects this failure. */
  private <E extends IOException> E fails(Class<E> type, FakeEndpoint.Answer answer)
      throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(answer)) {
      RepairClient client = client(endpoint, 5000);
      return assertThrows(type, () -> {
        try (RepairStream stream = client.open(request())) {
          stream.readAllBytes();
        }
      });
    }
  }

  @Test
  public void showsTheCookieThatTheFileHasNow() throws IOException {
    List<String> seen = new ArrayList<>();
    Path file = Files.createTempFile("ecpipe", ".cookie");
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      seen.add(text);
      sendAll(peer);
    })) {
      RepairClient.Options options = new RepairClient.Options();
      options.cookieFile = file.toString();
      options.retryMillis = 1;
      RepairClient client = client(endpoint, options);
      for (String digit : new String[] {"a", "7"}) {
        String secret = String.join("", java.util.Collections.nCopies(64, digit));
        Files.write(file, (secret + "\n").getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        try (RepairStream stream = client.open(request())) {
          stream.readAllBytes();
        }
        assertTrue(seen.get(seen.size() - 1).contains("\ncookie " + secret + "\n"));
      }
      Files.write(file, new byte[64]);
      assertThrows(IOException.class, () -> client.open(request()));
      assertEquals("without a cookie nothing is sent", 2, seen.size());
    } finally {
      Files.delete(file);
    }
  }

  @Test
  public void deliversTheBytesAndTheRequest() throws IOException {
    String[] seen = new String[1];
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      seen[0] = text;
      sendAll(peer);
    })) {
      try (RepairStream stream = client(endpoint, 5000).open(request())) {
        assertEquals("crc32c", stream.checksumType());
        assertEquals(512, stream.bytesPerChecksum());
        assertArrayEquals(CONTENT, stream.readAllBytes());
      }
    }
    assertEquals("store hdfs\npool BP-1\ngroup -9223372036854775792\nstamp 1001\n"
        + "group-bytes 17000000\ncodec rs\ndata 6\nparity 3\ncell 1048576\ntarget 0\noffset 0\n"
        + "bytes 3000001\nsource 1 uuid-1\nsource 8 uuid-8\ntimeout-ms 5000\nclient java\n",
        seen[0]);
  }

  @Test
  public void saysThatNobodyWaits() throws IOException {
    String[] seen = new String[1];
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      seen[0] = text;
      sendAll(peer);
    })) {
      RepairClient.Options options = new RepairClient.Options();
      options.background = true;
      options.scheme = "rp";
      client(endpoint, options).open(request()).close();
    }
    assertTrue(seen[0], seen[0].endsWith("client java\nscheme rp\nbackground 1\n"));
  }

  /** Those that are read to the end, and those that are closed before. */
  @Test
  public void closedRepairsLeaveNoDescriptor() throws Exception {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> sendAll(peer))) {
      RepairClient client = client(endpoint, 5000);
      int before = descriptorsAfterOne(client, request());
      for (int i = 0; i < 20; i++) {
        try (RepairStream stream = client.open(request())) {
          if (i % 2 == 0) {
            stream.readAllBytes();
          }
        }
      }
      awaitDescriptors(before);
    }
  }

  @Test
  public void aCookieThatCannotBeReadLeavesNoDescriptor() throws Exception {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> sendAll(peer))) {
      int before = descriptorsAfterOne(client(endpoint, 5000), request());
      RepairClient.Options options = new RepairClient.Options();
      options.cookieFile = "/absent/cookie";
      options.retryMillis = 0;
      RepairClient client = client(endpoint, options);
      for (int i = 0; i < 20; i++) {
        assertThrows(NoSuchFileException.class, () -> client.open(request()));
      }
      awaitDescriptors(before);
    }
  }

  /** With what a first repair leaves open for good. */
  private static int descriptorsAfterOne(RepairClient client, RepairRequest request)
      throws IOException {
    client.open(request).close();
    return descriptors();
  }

  /** Sockets and selectors: each connection has one or both, and nobody else opens any here. */
  private static int descriptors() throws IOException {
    int found = 0;
    try (DirectoryStream<Path> links = Files.newDirectoryStream(Paths.get("/proc/self/fd"))) {
      for (Path link : links) {
        try {
          String target = Files.readSymbolicLink(link).toString();
          found += target.contains("eventpoll") || target.startsWith("socket:") ? 1 : 0;
        } catch (NoSuchFileException e) {
          continue;  // the directory's own, or one that was closed in the meantime
        }
      }
    }
    return found;
  }

  @Test
  public void fillsBuffersAndConfirmsTheEnd() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> sendAll(peer));
        RepairStream stream = client(endpoint, 5000).open(request())) {
      ByteBuffer buffer = ByteBuffer.allocate(BYTES);
      stream.readFully(buffer);
      stream.awaitEnd();
      assertArrayEquals(CONTENT, buffer.array());
      assertThrows(EOFException.class, () -> stream.readFully(ByteBuffer.allocate(1)));
    }
  }

  @Test
  public void tellsOnceOfEachCorruptSourceOfTheRequest() throws IOException {
    List<String> told = new ArrayList<>();
    RepairRequest request = facts().target(0, 0, 10)
        .onCorrupt((index, uuid) -> told.add(index + " " + uuid)).build();
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      peer.header("10", "corrupt 8 uuid-8\ncorrupt 1 uuid-8\ncorrupt x\n");
      peer.data(new byte[10]);
      peer.end("10", "corrupt 8 uuid-8\ncorrupt 1 uuid-1\n");
    }); RepairStream stream = client(endpoint, 5000).open(request)) {
      assertEquals(Arrays.asList("8 uuid-8"), told);
      stream.readFully(ByteBuffer.allocate(10));
      assertEquals(1, told.size());
      stream.awaitEnd();
      assertEquals(Arrays.asList("8 uuid-8", "1 uuid-1"), told);
    }
  }

  /** Who has all bytes leaves without waiting, and hears what the end says all the same. */
  @Test
  public void closingAfterTheLastByteHearsTheEnd() throws Exception {
    CountDownLatch closed = new CountDownLatch(1);
    CountDownLatch told = new CountDownLatch(1);
    RepairRequest request = facts().target(0, 0, 10)
        .onCorrupt((index, uuid) -> told.countDown()).build();
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      peer.header(10);
      peer.data(new byte[10]);
      try {
        closed.await(10, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
      peer.end("10", "corrupt 8 uuid-8\n");
    })) {
      RepairStream stream = client(endpoint, 20000).open(request);
      stream.readFully(ByteBuffer.allocate(10));
      long start = System.nanoTime();
      stream.close();
      assertTrue(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(5));
      assertEquals(1, told.getCount());
      closed.countDown();
      assertTrue(told.await(10, TimeUnit.SECONDS));
    }
  }

  /** An end that never comes holds nothing for longer than the timeout, and nobody up. */
  @Test
  public void anEndThatNeverComesLeavesNoDescriptor() throws Exception {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      peer.header(10);
      peer.data(new byte[10]);
      peer.awaitClose();
    })) {
      RepairClient client = client(endpoint, 300);
      RepairRequest ten = facts().target(0, 0, 10).build();
      int before = descriptorsAfterOne(client, ten);
      for (int i = 0; i < 100; i++) {
        try (RepairStream stream = client.open(ten)) {
          stream.readFully(ByteBuffer.allocate(10));
        }
      }
      assertTrue(client.looksAlive());
      awaitDescriptors(before);
    }
  }

  /** No more than so many: the endpoint's end of the first repair may have been counted, too. */
  private static void awaitDescriptors(int count) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (descriptors() > count && System.nanoTime() < deadline) {
      Thread.sleep(20);
    }
    assertTrue(descriptors() + " are open, not " + count, descriptors() <= count);
  }

  @Test
  public void refusesGarbage() throws IOException {
    fails(IOException.class, (peer, text) -> peer.raw(new byte[64]));
  }

  @Test
  public void refusesWrongChecksum() throws IOException {
    IOException error = fails(IOException.class, (peer, text) -> {
      peer.header(BYTES);
      byte[] frame = Frame.encode(Frame.DATA, new byte[1000]).array();
      frame[500] ^= 1;
      peer.raw(frame);
    });
    assertTrue(error.getMessage(), error.getMessage().contains("checksum"));
  }

  @Test
  public void refusesLongFrame() throws IOException {
    fails(IOException.class, (peer, text) -> {
      peer.header(BYTES);
      byte[] frame = Frame.encode(Frame.DATA, new byte[0]).array();
      frame[11] = 1;  // 16 MiB
      peer.raw(frame);
    });
  }

  @Test
  public void shortStreamIsNoEnd() throws IOException {
    fails(EOFException.class, (peer, text) -> {
      peer.header(BYTES);
      peer.data(new byte[1000]);
    });
    fails(IOException.class, (peer, text) -> {
      peer.header(BYTES);
      peer.data(new byte[1000]);
      peer.end(1000);
    });
  }

  @Test
  public void allBytesWithoutEndAreNoEnd() throws IOException {
    fails(EOFException.class, (peer, text) -> {
      peer.header(BYTES);
      for (int at = 0; at < BYTES; at += 1 << 20) {
        peer.data(Arrays.copyOfRange(CONTENT, at, Math.min(BYTES, at + (1 << 20))));
      }
    });
  }

  @Test
  public void refusesMoreThanWanted() throws IOException {
    fails(IOException.class, (peer, text) -> {
      peer.header(BYTES);
      for (int i = 0; i < 4; i++) {
        peer.data(new byte[1 << 20]);
      }
    });
    fails(IOException.class, (peer, text) -> peer.header(BYTES + 1));
  }

  @Test
  public void errorsHaveCodeAndMessage() throws IOException {
    RepairException error = fails(RepairException.class,
        (peer, text) -> peer.error("NOT_FOUND", "5 of 6 survivors"));
    assertEquals("NOT_FOUND", error.code());
    assertEquals("NOT_FOUND: 5 of 6 survivors", error.getMessage());
    error = fails(RepairException.class, (peer, text) -> {
      peer.header(BYTES);
      peer.data(new byte[1000]);
      peer.error("DATA_LOSS", "late");
    });
    assertEquals("DATA_LOSS", error.code());
  }

  @Test
  public void silenceCostsOneTimeoutAltogether() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> peer.awaitClose())) {
      RepairClient client = client(endpoint, 300);
      long start = System.nanoTime();
      assertThrows(SocketTimeoutException.class, () -> client.open(request()));
      assertFalse(client.looksAlive());
      for (int i = 0; i < 100; i++) {
        assertThrows(IOException.class, () -> client.open(request()));
      }
      long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      assertTrue("took " + millis + " ms", millis >= 300 && millis < 2000);
      assertEquals(1, endpoint.requests.get());
    }
  }

  @Test
  public void silenceAfterTheHeaderTimesOut() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      peer.header(BYTES);
      peer.data(new byte[10]);
      peer.awaitClose();
    })) {
      try (RepairStream stream = client(endpoint, 300).open(request())) {
        assertThrows(SocketTimeoutException.class,
            () -> stream.readFully(ByteBuffer.allocate(11)));
      }
    }
  }

  @Test
  public void quickRefusalsDoNotCountAsDeath() throws IOException {
    try (FakeEndpoint endpoint =
        new FakeEndpoint((peer, text) -> peer.error("NOT_FOUND", "no such block"))) {
      RepairClient client = client(endpoint, 5000);
      for (int i = 0; i < 3; i++) {
        assertThrows(RepairException.class, () -> client.open(request()));
      }
      assertTrue(client.looksAlive());
      assertEquals(3, endpoint.requests.get());
    }
  }

  @Test
  public void anEndpointWithoutItsCoordinatorIsLeftAlone() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(
        (peer, text) -> peer.error("UNAVAILABLE", "coordinator 10.0.0.1:7700: refused"))) {
      RepairClient client = client(endpoint, 5000);
      assertThrows(RepairException.class, () -> client.open(request()));
      assertFalse(client.looksAlive());
      assertThrows(IOException.class, () -> client.open(request()));
      assertEquals(1, endpoint.requests.get());
    }
  }

  @Test
  public void absentSocketFailsAtOnce() throws IOException {
    FakeEndpoint gone = new FakeEndpoint((peer, text) -> { });
    gone.close();
    RepairClient client = client(gone, 5000);
    long start = System.nanoTime();
    assertThrows(IOException.class, () -> client.open(request()));
    assertTrue(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(3));
    assertFalse(client.looksAlive());
  }

  @Test
  public void closeCancelsAndIsNoFailure() throws Exception {
    CountDownLatch cancelled = new CountDownLatch(1);
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
      peer.header(BYTES);
      if (peer.awaitClose()) {
        cancelled.countDown();
      }
    })) {
      RepairClient client = client(endpoint, 20000);
      RepairStream stream = client.open(request());
      Thread closer = new Thread(() -> {
        try {
          stream.close();
        } catch (IOException e) {
          throw new AssertionError(e);
        }
      });
      long start = System.nanoTime();
      closer.start();
      assertThrows(IOException.class, () -> stream.readFully(ByteBuffer.allocate(1)));
      closer.join();
      assertTrue(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(10));
      assertTrue(cancelled.await(10, TimeUnit.SECONDS));
      assertTrue(client.looksAlive());
    }
  }

  @Test
  public void requestsAreChecked() {
    assertThrows(IllegalArgumentException.class,
        () -> new RepairRequest.Builder().policy("lrc", 6, 3, 1024));
    assertThrows(IllegalArgumentException.class, () -> facts().target(9, 0, 1).build());
    assertThrows(IllegalArgumentException.class, () -> facts().target(0, 0, 0).build());
    assertThrows(IllegalArgumentException.class, () -> facts().target(0, -1, 5).build());
    assertThrows(IllegalArgumentException.class, () -> facts().build());
    assertThrows(IllegalArgumentException.class, () -> facts().target(1, 0, 5).target(0, 0, 5));
    assertThrows(IllegalArgumentException.class, () -> facts().target(1, 0, 5).target(2, 1, 5));
    assertThrows(IllegalArgumentException.class, () -> facts().target(0, 0, 5).target(1, 0, 5)
        .target(2, 0, 5).target(3, 0, 5).build());
    assertThrows(IllegalArgumentException.class, () -> EndpointAddress.parse("unix:relative"));
    assertThrows(IllegalArgumentException.class, () -> EndpointAddress.parse("tcp:host"));
    RepairClient far = new RepairClient(
        EndpointAddress.parse("tcp:192.0.2.1:7713"), new RepairClient.Options());
    assertTrue(assertThrows(IOException.class, () -> far.open(request())).getMessage()
        .contains("loopback"));
  }

  @Test
  public void checksumsAgree() {
    byte[] digits = "123456789".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    assertEquals(0xE3069283, Checksums.crc32c(digits, 0, 9));
    assertEquals(0xE3069283, Checksums.tableCrc32c(digits, 0, 9));
    assertEquals(Checksums.crc32c(CONTENT, 3, 100_001), Checksums.tableCrc32c(CONTENT, 3, 100_001));
  }
}

// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;

import io.ecpipe.client.FakeEndpoint;
import io.ecpipe.client.RepairClient;
import io.ecpipe.client.RepairRequest;
import io.ecpipe.client.RepairStream;
import io.ecpipe.hdfs.Counters;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.ChecksumException;
import org.junit.Test;

public class FailoverBlockReaderTest {
  private static final int BYTES = 10_000;
  private static final int CELL = 1000;
  private static final byte[] BLOCK = new byte[BYTES];

  static {
    new java.util.Random(3).nextBytes(BLOCK);
  }

  private final List<String> opened = new ArrayList<>();
  private int reported;

  private FailoverBlockReader.Source source(FakeEndpoint endpoint) {
    RepairClient client = new RepairClient(endpoint.address(), new RepairClient.Options());
    return new FailoverBlockReader.Source() {
      @Override
      public RepairStream open(long offset, long bytes) throws IOException {
        opened.add(offset + "+" + bytes);
        return client.open(new RepairRequest.Builder().group("BP", -16, 1, BYTES)
            .policy("rs", 6, 3, 1 << 20).target(0, offset, bytes).build());
      }

      @Override
      public long block() {
        return -16;
      }

      @Override
      public void reportCorrupt() {
        reported++;
      }
    };
  }

  private static long field(String request, String key) {
    for (String line : request.split("\n")) {
      if (line.startsWith(key + " ")) {
        return Long.parseLong(line.substring(key.length() + 1));
      }
    }
    throw new AssertionError(key);
  }

  private static void serve(FakeEndpoint.Peer peer, String request) throws IOException {
    int offset = (int) field(request, "offset");
    int bytes = (int) field(request, "bytes");
    peer.header(bytes);
    peer.data(Arrays.copyOfRange(BLOCK, offset, offset + bytes));
    peer.end(bytes);
  }

  /** Reads up to byte `good`, then throws; a read gives at most 700 bytes. */
  private static BlockReader stock(int good, IOException failure) {
    int[] at = new int[1];
    return (BlockReader) Proxy.newProxyInstance(BlockReader.class.getClassLoader(),
        new Class<?>[] {BlockReader.class}, (proxy, method, arguments) -> {
          if (method.getName().equals("close")) {
            return null;
          }
          if (at[0] == good) {
            throw failure;
          }
          ByteBuffer buffer = (ByteBuffer) arguments[0];
          int count = Math.min(Math.min(buffer.remaining(), 700), good - at[0]);
          buffer.put(BLOCK, at[0], count);
          at[0] += count;
          return count;
        });
  }

  private static byte[] readAll(FailoverBlockReader reader, int step) throws IOException {
    ByteBuffer all = ByteBuffer.allocate(BYTES);
    while (all.hasRemaining()) {
      all.limit(Math.min(BYTES, all.position() + step));
      assertEquals(all.remaining(), reader.read(all.duplicate()));
      all.position(all.limit()).limit(BYTES);
    }
    assertEquals(-1, reader.read(ByteBuffer.allocate(1)));
    return all.array();
  }

  private FailoverBlockReader reader(BlockReader stock, FakeEndpoint endpoint, long window) {
    return reader(stock, endpoint, FailoverBlockReader.Range.sequential(
        0, BYTES, new LookAhead(CELL, window).inOrder()));
  }

  private FailoverBlockReader reader(BlockReader stock, FakeEndpoint endpoint,
      FailoverBlockReader.Range range) {
    return new FailoverBlockReader(stock, source(endpoint), range, Counters.READS.newSession());
  }

  @Test
  public void goesOnAtTheByteWhereTheDataNodeFailed() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(FailoverBlockReaderTest::serve)) {
      FailoverBlockReader reader = reader(stock(4321, new IOException("gone")), endpoint, BYTES);
      assertArrayEquals(BLOCK, readAll(reader, 1000));
      assertEquals(Arrays.asList("4321+5679"), opened);
      assertEquals(0, reported);
      reader.close();
    }
  }

  @Test
  public void reportsACorruptReplicaOnce() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(FailoverBlockReaderTest::serve)) {
      FailoverBlockReader reader =
          reader(stock(1024, new ChecksumException("rotten", 1024)), endpoint, 2000);
      assertArrayEquals(BLOCK, readAll(reader, BYTES));
      assertEquals(1, reported);
      reader.close();
    }
  }

  @Test
  public void windowsGrow() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(FailoverBlockReaderTest::serve)) {
      FailoverBlockReader reader = reader(null, endpoint, 1000);
      assertArrayEquals(BLOCK, readAll(reader, 333));
      assertEquals(Arrays.asList("0+1000", "1000+4000", "5000+5000"), opened);
      reader.close();
    }
  }

  @Test
  public void whoHasSoughtGetsTheCellAndMoreWhenReadingOn() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(FailoverBlockReaderTest::serve)) {
      FailoverBlockReader reader = reader(null, endpoint,
          FailoverBlockReader.Range.sequential(1300, BYTES, new LookAhead(CELL, 4000)));
      for (int count : new int[] {300, 400, 1000, 1000, 1000, 1000, 1000}) {
        assertEquals(count, reader.read(ByteBuffer.allocate(count)));
      }
      assertEquals(Arrays.asList("1300+700", "2000+2000", "4000+4000"), opened);
      reader.close();
    }
  }

  @Test
  public void aPositionalReadAsksForWhatItNeedsAndGetsWhatItWants() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(FailoverBlockReaderTest::serve)) {
      FailoverBlockReader reader =
          reader(null, endpoint, FailoverBlockReader.Range.positional(100, 2000, 1700));
      for (int count : new int[] {600, 1000, 300}) {
        assertEquals(count, reader.read(ByteBuffer.allocate(count)));
      }
      assertEquals(-1, reader.read(ByteBuffer.allocate(1)));
      assertEquals(Arrays.asList("100+1600", "1700+300"), opened);
      reader.close();
    }
  }

  @Test
  public void aSessionCountsABlockThatFallsBackOnce() {
    Counters.Session session = Counters.READS.newSession();
    long before = Counters.READS.getFallbacks();
    session.fallback(-16);
    session.failed(-16, true);
    session.fallback(-15);
    assertEquals(2, Counters.READS.getFallbacks() - before);
  }

  @Test
  public void skipsWithoutReading() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint(FailoverBlockReaderTest::serve)) {
      FailoverBlockReader reader = reader(null, endpoint, BYTES);
      assertEquals(9000, reader.skip(9000));
      byte[] rest = new byte[1000];
      reader.readFully(rest, 0, 1000);
      assertArrayEquals(Arrays.copyOfRange(BLOCK, 9000, BYTES), rest);
      assertEquals(Arrays.asList("9000+1000"), opened);
      reader.close();
    }
  }

  @Test
  public void aFailedReadMovesNothing() throws IOException {
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, request) -> {
      peer.header(field(request, "bytes"));
      peer.data(new byte[100]);
      peer.error("DATA_LOSS", "two survivors are corrupt");
    })) {
      IOException gone = new IOException("gone");
      FailoverBlockReader reader = reader(stock(500, gone), endpoint, BYTES);
      ByteBuffer buffer = ByteBuffer.allocate(BYTES);
      buffer.position(7).limit(2000);
      assertSame(gone, assertThrows(IOException.class, () -> reader.read(buffer)));
      assertEquals(7, buffer.position());
      assertEquals(2000, buffer.limit());
      reader.close();
    }
  }
}

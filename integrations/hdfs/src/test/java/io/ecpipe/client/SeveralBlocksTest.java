// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import static io.ecpipe.client.RepairClientTest.facts;
import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.Test;

public class SeveralBlocksTest extends EachWay {
  private static final int BYTES = 3_000_001;
  private static final byte[] CONTENT = new byte[BYTES];

  static {
    new Random(7).nextBytes(CONTENT);
  }

  private static final int SHORT = 1_000_003;

  /** Blocks 0 and 4 and a parity block, of which block 4 is shorter. */
  private static RepairRequest several() {
    return facts().target(0, 7, BYTES).target(4, 7, SHORT).target(7, 7, BYTES).build();
  }

  private static final String SEVERAL_BYTES = BYTES + " " + SHORT + " " + BYTES;

  /** Byte x of target i is byte x of the content plus i; a round has `step` bytes of each. */
  private static void sendRounds(FakeEndpoint.Peer peer, int step) throws IOException {
    peer.header(SEVERAL_BYTES, "");
    for (int at = 0; at < BYTES; at += step) {
      for (int target = 0; target < 3; target++) {
        int end = Math.min(target == 1 ? SHORT : BYTES, at + step);
        if (end > at) {
          peer.data(target, shifted(at, end, target));
        }
      }
    }
    peer.end(SEVERAL_BYTES, "");
  }

  private static byte[] shifted(int from, int to, int by) {
    byte[] bytes = Arrays.copyOfRange(CONTENT, from, to);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] += by;
    }
    return bytes;
  }

  @Test
  public void readsSeveralBlocksEvenlyWhateverTheRounds() throws IOException {
    String[] seen = new String[1];
    for (int step : new int[] {1000, 65536, 100_003, 1 << 20}) {
      try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
        seen[0] = text;
        sendRounds(peer, step);
      }); RepairStream stream = client(endpoint, 5000).open(several())) {
        ByteBuffer[] blocks = {ByteBuffer.allocate(BYTES), ByteBuffer.allocate(SHORT),
            ByteBuffer.allocate(BYTES)};
        for (int end = 65536; blocks[0].position() < BYTES; end += 65536) {
          for (ByteBuffer block : blocks) {
            block.limit(Math.min(block.capacity(), end));
          }
          stream.readFully(blocks);
        }
        stream.awaitEnd();
        for (int i = 0; i < 3; i++) {
          assertArrayEquals(shifted(0, blocks[i].capacity(), i), blocks[i].array());
        }
      }
    }
    assertTrue(seen[0], seen[0].contains("\ntarget 0 4 7\noffset 7\nbytes " + SEVERAL_BYTES
        + "\nsource 1 uuid-1\n"));
  }

  /** Nothing is gathered for a block that nobody reads. */
  @Test
  public void refusesBlocksOutOfTurnOrUnread() throws IOException {
    FakeEndpoint.Answer outOfTurn = (peer, text) -> {
      peer.header(SEVERAL_BYTES, "");
      peer.data(0, new byte[10]);
      peer.data(2, new byte[10]);
      peer.data(2, new byte[10]);
    };
    FakeEndpoint.Answer unknown = (peer, text) -> {
      peer.header(SEVERAL_BYTES, "");
      peer.data(3, new byte[10]);
    };
    FakeEndpoint.Answer tooMuch = (peer, text) -> {
      peer.header(SEVERAL_BYTES, "");
      peer.data(1, new byte[1 << 20]);
    };
    for (FakeEndpoint.Answer answer : Arrays.asList(outOfTurn, unknown, tooMuch)) {
      try (FakeEndpoint endpoint = new FakeEndpoint(answer);
          RepairStream stream = client(endpoint, 5000).open(several())) {
        assertThrows(IOException.class, () -> stream.readFully(
            ByteBuffer.allocate(30), ByteBuffer.allocate(30), ByteBuffer.allocate(30)));
      }
    }
    try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> sendRounds(peer, 1000));
        RepairStream stream = client(endpoint, 5000).open(several())) {
      assertThrows(IllegalArgumentException.class,
          () -> stream.readFully(ByteBuffer.allocate(1)));
      assertThrows(IllegalStateException.class, () -> stream.read());
      assertThrows(IOException.class, () -> stream.awaitEnd());
      assertThrows(IOException.class, () -> stream.readFully(ByteBuffer.allocate(5000),
          ByteBuffer.allocate(0), ByteBuffer.allocate(0)));
    }
  }

  @Test
  public void severalBlocksNeedTheirOwnEnd() throws IOException {
    for (String bytes : new String[] {"30", "10 10", "10 10 11"}) {
      try (FakeEndpoint endpoint = new FakeEndpoint((peer, text) -> {
        peer.header("10 10 10", "");
        for (int target = 0; target < 3; target++) {
          peer.data(target, new byte[10]);
        }
        peer.end(bytes, "");
      })) {
        RepairRequest request = facts().target(0, 0, 10).target(4, 0, 10).target(7, 0, 10).build();
        try (RepairStream stream = client(endpoint, 5000).open(request)) {
          stream.readFully(
              ByteBuffer.allocate(10), ByteBuffer.allocate(10), ByteBuffer.allocate(10));
          assertThrows(IOException.class, stream::awaitEnd);
        }
      }
    }
  }
}

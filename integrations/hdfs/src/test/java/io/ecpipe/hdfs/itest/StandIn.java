// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs.itest;

import io.ecpipe.client.FakeEndpoint;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.erasurecode.CodecUtil;
import org.apache.hadoop.io.erasurecode.ErasureCoderOptions;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureDecoder;

/**
 * An endpoint that reads the survivors' block files itself and decodes with Hadoop's own coder: for
 * tests of the Java side without ECPipe's daemons (`itest.sh --stand-in`). It checks generation
 * stamps and no checksums.
 *
 * Arguments: the socket's path, then `UUID=VOLUME` for each DataNode.
 */
public final class StandIn {
  private static final int PIECE_BYTES = 1 << 20;

  private final Map<String, Path> volumes = new HashMap<>();

  public static void main(String[] words) throws Exception {
    StandIn standIn = new StandIn();
    for (String word : Arrays.asList(words).subList(1, words.length)) {
      String[] pair = word.split("=", 2);
      standIn.volumes.put(pair[0], Path.of(pair[1]));
    }
    try (FakeEndpoint endpoint = new FakeEndpoint(
        UnixDomainSocketAddress.of(words[0]), standIn::answer)) {
      Thread.currentThread().join();
    }
  }

  private void answer(FakeEndpoint.Peer peer, String request) throws IOException {
    Map<String, String> fields = new HashMap<>();
    Map<Integer, Path> survivors = new TreeMap<>();
    for (String line : request.split("\n")) {
      String[] pair = line.split(" ", 2);
      fields.put(pair[0], pair[1]);
    }
    for (String line : request.split("\n")) {
      String[] words = line.split(" ");
      if (words[0].equals("source") && volumes.containsKey(words[2])) {
        Path file = replica(volumes.get(words[2]), fields, Integer.parseInt(words[1]));
        if (file != null) {
          survivors.putIfAbsent(Integer.parseInt(words[1]), file);
        }
      }
    }
    repair(peer, fields, survivors);
  }

  /** Null unless the volume has the block with this generation stamp. */
  private static Path replica(Path volume, Map<String, String> fields, int index) {
    long id = Long.parseLong(fields.get("group")) + index;
    Path folder = volume.resolve("current").resolve(fields.get("pool"))
        .resolve("current/finalized/subdir" + (id >> 16 & 0x1F) + "/subdir" + (id >> 8 & 0x1F));
    Path meta = folder.resolve("blk_" + id + "_" + fields.get("stamp") + ".meta");
    return Files.exists(meta) ? folder.resolve("blk_" + id) : null;
  }

  private static void repair(FakeEndpoint.Peer peer, Map<String, String> fields,
      Map<Integer, Path> survivors) throws IOException {
    int data = Integer.parseInt(fields.get("data"));
    int parity = Integer.parseInt(fields.get("parity"));
    long cell = Long.parseLong(fields.get("cell"));
    long cells = (Long.parseLong(fields.get("group-bytes")) + cell - 1) / cell;
    for (int i = (int) Math.min(cells, data); i < data; i++) {
      survivors.put(i, Path.of("/dev/null"));  // a block that does not exist is all zeros
    }
    if (survivors.size() < data) {
      peer.error("UNAVAILABLE", survivors.size() + " of " + data + " survivors");
      return;
    }
    RawErasureDecoder decoder = CodecUtil.createRawDecoder(new Configuration(false),
        fields.get("codec"), new ErasureCoderOptions(data, parity));
    long offset = Long.parseLong(fields.get("offset"));
    int[] targets = Arrays.stream(fields.get("target").split(" "))
        .mapToInt(Integer::parseInt).toArray();
    long[] bytes = Arrays.stream(fields.get("bytes").split(" "))
        .mapToLong(Long::parseLong).toArray();
    long longest = Arrays.stream(bytes).max().getAsLong();
    peer.header(fields.get("bytes"), "");
    for (long at = 0; at < longest; at += PIECE_BYTES) {
      int count = (int) Math.min(PIECE_BYTES, longest - at);
      byte[][] inputs = new byte[data + parity][];
      int used = 0;
      for (Map.Entry<Integer, Path> survivor : survivors.entrySet()) {
        if (used++ < data) {
          inputs[survivor.getKey()] = read(survivor.getValue(), offset + at, count);
        }
      }
      byte[][] lost = new byte[targets.length][count];
      decoder.decode(inputs, targets, lost);
      for (int i = 0; i < targets.length; i++) {
        int wanted = (int) Math.max(0, Math.min(count, bytes[i] - at));
        if (wanted > 0) {
          peer.data(i, Arrays.copyOf(lost[i], wanted));
        }
      }
    }
    peer.end(fields.get("bytes"), "");
  }

  /** With zeros behind the end of the file. */
  private static byte[] read(Path file, long offset, int count) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(count);
    if (file.startsWith("/dev")) {
      return buffer.array();
    }
    try (FileChannel channel = FileChannel.open(file)) {
      while (buffer.hasRemaining() && channel.read(buffer, offset + buffer.position()) > 0) {
        continue;
      }
    }
    return buffer.array();
  }
}

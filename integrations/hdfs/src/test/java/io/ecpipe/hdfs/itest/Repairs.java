// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs.itest;

import io.ecpipe.client.RepairClient;
import io.ecpipe.client.RepairRequest;
import io.ecpipe.client.RepairStream;
import io.ecpipe.hdfs.GroupFacts;
import io.ecpipe.hdfs.Locations;
import io.ecpipe.hdfs.Settings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.util.StripedBlockUtil;

/** Whole blocks of a group through the endpoint, as a reconstruction asks for them. */
final class Repairs {
  private static final int STEP_BYTES = 64 << 10;  // HDFS's own

  private final RepairClient client;
  private final LocatedStripedBlock group;
  private final ErasureCodingPolicy policy;

  private Repairs(RepairClient client, LocatedStripedBlock group, ErasureCodingPolicy policy) {
    this.client = client;
    this.group = group;
    this.policy = policy;
  }

  /**
   * The seconds that the blocks took, in one repair or in one of each at the same time, and the
   * SHA-256 of each.
   */
  static String run(Configuration conf, String path, int number, boolean one, int[] blocks)
      throws Exception {
    LocatedBlocks located;
    try (FileSystem fs = FileSystem.newInstance(conf)) {
      located = ((DistributedFileSystem) fs).getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE);
    }
    Repairs repairs = new Repairs(Settings.client(conf, "driver", true),
        (LocatedStripedBlock) located.get(number), located.getErasureCodingPolicy());
    ExecutorService threads = Executors.newFixedThreadPool(blocks.length);
    long start = System.nanoTime();
    try {
      List<Future<List<String>>> running = new ArrayList<>();
      for (int i = 0; i < (one ? 1 : blocks.length); i++) {
        int[] wanted = one ? blocks : new int[] {blocks[i]};
        running.add(threads.submit(() -> repairs.repair(wanted, blocks)));
      }
      List<String> words = new ArrayList<>();
      for (Future<List<String>> repair : running) {
        words.addAll(repair.get());
      }
      words.add(0, String.valueOf((System.nanoTime() - start) / 1e9));
      return String.join(" ", words);
    } finally {
      threads.shutdownNow();
    }
  }

  private List<String> repair(int[] wanted, int[] lost) throws IOException {
    RepairRequest.Builder request = GroupFacts.of(group.getBlock(), policy,
        group.getBlockIndices(), Locations.of(group), lost);
    long[] bytes = new long[wanted.length];
    ByteBuffer[] steps = new ByteBuffer[wanted.length];
    MessageDigest[] digests = new MessageDigest[wanted.length];
    for (int i = 0; i < wanted.length; i++) {
      bytes[i] = StripedBlockUtil.getInternalBlockLength(
          group.getBlockSize(), policy, wanted[i]);
      request.target(wanted[i], 0, bytes[i]);
      steps[i] = ByteBuffer.allocate(STEP_BYTES);
      digests[i] = Content.sha256();
    }
    long longest = Arrays.stream(bytes).max().getAsLong();
    try (RepairStream stream = client.open(request.build())) {
      for (long at = 0; at < longest; at += STEP_BYTES) {
        for (int i = 0; i < wanted.length; i++) {
          steps[i].clear().limit((int) Math.max(0, Math.min(STEP_BYTES, bytes[i] - at)));
        }
        stream.readFully(steps);
        for (int i = 0; i < wanted.length; i++) {
          digests[i].update(steps[i].array(), 0, steps[i].limit());
        }
      }
      stream.awaitEnd();
    }
    List<String> sums = new ArrayList<>();
    for (MessageDigest digest : digests) {
      sums.add(String.format("%064x", new java.math.BigInteger(1, digest.digest())));
    }
    return sums;
  }
}

// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs.server.datanode.erasurecode;

import io.ecpipe.client.RepairClient;
import io.ecpipe.client.RepairRequest;
import io.ecpipe.client.RepairStream;
import io.ecpipe.hdfs.Counters;
import io.ecpipe.hdfs.GroupFacts;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.datanode.metrics.DataNodeMetrics;
import org.apache.hadoop.util.DataChecksum;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A reconstruction task whose bytes come through ECPipe; HDFS writes them to the targets as always.
 *
 * One repair brings the bytes of all targets. No target is touched before it has its first bytes.
 * Until then any failure means that the task runs as if ECPipe were not there. Afterwards there is
 * no way back, for the targets have replicas in the making: the task fails, the targets drop them,
 * and the NameNode tries again.
 */
final class RepairTask implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(RepairTask.class);
  private static final String XMITS_WEIGHT = "dfs.datanode.ec.reconstruction.xmits.weight";
  private static final float XMITS_WEIGHT_DEFAULT = 0.5f;

  private final StripedBlockReconstructor task;
  private final PrivateParts parts;
  private final RepairClient client;
  private final Counters counters;
  private final StripedReader reader;
  private final StripedWriter writer;
  /** The blocks to be repaired, ascending. */
  private final int[] lost;
  private RepairStream stream;

  RepairTask(StripedBlockReconstructor task, PrivateParts parts, RepairClient client,
      Counters counters) {
    this.task = task;
    this.parts = parts;
    this.client = client;
    this.counters = counters;
    reader = task.getStripedReader();
    writer = parts.get(parts.writer, task, StripedWriter.class);
    short[] targets = parts.get(parts.targetIndices, writer, short[].class);
    lost = IntStream.range(0, targets.length).map(i -> targets[i]).sorted().toArray();
  }

  @Override
  public void run() {
    if (begin()) {
      runRepair();
    } else {
      counters.fallbacks.incrementAndGet();
      task.run();
    }
  }

  private boolean begin() {
    try {
      openStream();
      adoptChecksum();
      for (int index : lost) {
        counters.requestedBytes.addAndGet(task.getBlockLen(index));
      }
      return true;
    } catch (IOException | RuntimeException e) {
      LOG.info("ecpipe: HDFS reconstructs {} itself: {}", task.getBlockGroup(), e.toString());
      closeStream();
      return false;
    }
  }

  private void openStream() throws IOException {
    RepairRequest.Builder request = GroupFacts.of(task.getBlockGroup(),
        parts.get(parts.policy, task, ErasureCodingPolicy.class), liveIndices(), sources(), lost)
        .onCorrupt(this::reportCorrupt);
    for (int i = 0; i < lost.length; i++) {
      // With more targets than lost blocks HDFS leaves zeros in the rest.
      if (isLive(lost[i]) || (i > 0 && lost[i] == lost[i - 1])) {
        throw new IOException("there are more targets than lost blocks");
      }
      request.target(lost[i], 0, task.getBlockLen(lost[i]));
    }
    stream = client.open(request.build());
  }

  /** As the stock task does with what it finds itself. */
  private void reportCorrupt(int index, String uuid) {
    DatanodeInfo node = GroupFacts.node(liveIndices(), sources(), index, uuid);
    ExtendedBlock block = task.getBlock(index);
    LOG.warn("ecpipe: {} on {} is corrupt; telling the NameNode", block, node);
    try {
      task.getDatanode().reportRemoteBadBlock(node, block);
    } catch (IOException e) {
      LOG.warn("ecpipe: cannot tell the NameNode that {} is corrupt: {}", block, e.toString());
    }
  }

  private byte[] liveIndices() {
    return parts.get(parts.liveIndices, reader, byte[].class);
  }

  private DatanodeInfo[] sources() {
    return parts.get(parts.sources, reader, DatanodeInfo[].class);
  }

  private boolean isLive(int index) {
    for (byte live : liveIndices()) {
      if (live == index) {
        return true;
      }
    }
    return false;
  }

  /** What the stock task learns from its first source. */
  private void adoptChecksum() {
    DataChecksum.Type type = stream.checksumType().equals("crc32")
        ? DataChecksum.Type.CRC32 : DataChecksum.Type.CRC32C;
    int chunk = stream.bytesPerChecksum();
    int wanted = parts.get(parts.wantedBufferSize, reader, Integer.class);
    parts.set(parts.checksum, reader, DataChecksum.newDataChecksum(type, chunk));
    parts.set(parts.bufferSize, reader, wanted < chunk ? chunk : wanted - wanted % chunk);
  }

  private void runRepair() {
    try {
      task.initDecoderIfNecessary();  // it decides between heap and direct buffers
      writer.init();
      transferAll();
      stream.awaitEnd();
      writer.endTargetBlocks();
      counters.repairs.incrementAndGet();
      LOG.info("ecpipe: repaired {} of {} through {}, repair id {}", Arrays.toString(lost),
          task.getBlockGroup(), client.address(), stream.repairId());
    } catch (Throwable e) {
      counters.brokenRepairs.incrementAndGet();
      LOG.warn("ecpipe: failed to repair {} of {}, repair id {}: {}", Arrays.toString(lost),
          task.getBlockGroup(), stream.repairId(), e.toString(),
          e instanceof IOException ? null : e);
      task.getDatanode().getMetrics().incrECFailedReconstructionTasks();
    } finally {
      finish();
    }
  }

  private void transferAll() throws IOException {
    while (task.getPositionInBlock() < task.getMaxTargetLength()) {
      int count = (int) Math.min(
          task.getBufferSize(), task.getMaxTargetLength() - task.getPositionInBlock());
      fillTargetBuffers(count);
      writer.updateRealTargetBuffers(count);
      if (writer.transferData2Targets() == 0) {
        throw new IOException("all targets have failed; none takes data any more");
      }
      task.updatePositionInBlock(count);
      writer.clearBuffers();
    }
  }

  /** One step of all targets, so that the slowest of them holds the repair back. */
  private void fillTargetBuffers(int count) throws IOException {
    int[] indices = writer.getRealTargetIndices();
    ByteBuffer[] buffers = writer.getRealTargetBuffers(count);
    ByteBuffer[] filled = new ByteBuffer[lost.length];
    for (int i = 0; i < indices.length; i++) {
      filled[Arrays.binarySearch(lost, indices[i])] = buffers[i].duplicate();
    }
    for (int i = 0; i < lost.length; i++) {
      long left = Math.max(0, task.getBlockLen(lost[i]) - task.getPositionInBlock());
      int wanted = (int) Math.min(left, count);
      if (filled[i] == null) {
        filled[i] = ByteBuffer.allocate(wanted);  // of a target that could not be opened
      } else {
        filled[i].limit(filled[i].position() + wanted);
        counters.repairedBytes.addAndGet(wanted);
      }
    }
    stream.readFully(filled);
  }

  /** What the stock task does at its end, whatever that was. */
  private void finish() {
    float weight = task.getConf().getFloat(XMITS_WEIGHT, XMITS_WEIGHT_DEFAULT);
    task.getDatanode().decrementXmitsInProgress(Math.max((int) (task.getXmits() * weight), 1));
    DataNodeMetrics metrics = task.getDatanode().getMetrics();
    metrics.incrECReconstructionTasks();
    metrics.incrECReconstructionBytesWritten(task.getBytesWritten());
    closeStream();
    try {
      closeWriters();
    } finally {
      task.cleanup();
    }
  }

  /**
   * Each for itself: StripedWriter.close() of Hadoop 3.1 stops at a target that could not be
   * opened. The reader has nothing to close: its init(), which opens sources and allocates buffers,
   * was never called, and its close() does not expect that.
   */
  private void closeWriters() {
    for (StripedBlockWriter target : parts.get(parts.writers, writer, StripedBlockWriter[].class)) {
      if (target == null) {
        continue;
      }
      try {
        if (target.getTargetBuffer() != null) {
          task.freeBuffer(target.getTargetBuffer());
          target.freeTargetBuffer();
        }
      } finally {
        target.close();
      }
    }
  }

  private void closeStream() {
    if (stream == null) {
      return;
    }
    try {
      stream.close();
    } catch (IOException e) {
      LOG.debug("ecpipe: closing a repair", e);
    }
  }
}

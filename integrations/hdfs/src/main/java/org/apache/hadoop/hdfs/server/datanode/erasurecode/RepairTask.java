// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs.server.datanode.erasurecode;

import io.ecpipe.client.RepairClient;
import io.ecpipe.client.RepairStream;
import io.ecpipe.hdfs.Counters;
import io.ecpipe.hdfs.GroupFacts;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.server.datanode.metrics.DataNodeMetrics;
import org.apache.hadoop.util.DataChecksum;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A reconstruction task whose bytes come through ECPipe; HDFS writes them to the targets as always.
 *
 * No target is touched before every repair has its first bytes. Until then any failure means that
 * the task runs as if ECPipe were not there. Afterwards there is no way back, for the targets have
 * replicas in the making: the task fails, the targets drop them, and the NameNode tries again.
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
  /** The repairs by their index in the group. */
  private final Map<Integer, RepairStream> streams = new TreeMap<>();

  RepairTask(StripedBlockReconstructor task, PrivateParts parts, RepairClient client,
      Counters counters) {
    this.task = task;
    this.parts = parts;
    this.client = client;
    this.counters = counters;
    reader = task.getStripedReader();
    writer = parts.get(parts.writer, task, StripedWriter.class);
  }

  @Override
  public void run() {
    if (begin()) {
      runRepairs();
    } else {
      counters.fallbacks.incrementAndGet();
      task.run();
    }
  }

  private boolean begin() {
    try {
      openStreams();
      adoptChecksum();
      for (int index : streams.keySet()) {
        counters.requestedBytes.addAndGet(task.getBlockLen(index));
      }
      return true;
    } catch (IOException | RuntimeException e) {
      LOG.info("ecpipe: HDFS reconstructs {} itself: {}", task.getBlockGroup(), e.toString());
      closeStreams();
      return false;
    }
  }

  private void openStreams() throws IOException {
    for (short index : targetIndices()) {
      // With more targets than lost blocks HDFS leaves zeros in the rest.
      if (isLive(index) || streams.containsKey((int) index)) {
        throw new IOException("there are more targets than lost blocks");
      }
      streams.put((int) index, client.begin(GroupFacts.of(task.getBlockGroup(),
          parts.get(parts.policy, task, ErasureCodingPolicy.class), liveIndices(),
          parts.get(parts.sources, reader, DatanodeInfo[].class), index)
          .target(index, 0, task.getBlockLen(index)).build()));
    }
    for (RepairStream stream : streams.values()) {
      stream.awaitHeader();
    }
  }

  private short[] targetIndices() {
    return parts.get(parts.targetIndices, writer, short[].class);
  }

  private byte[] liveIndices() {
    return parts.get(parts.liveIndices, reader, byte[].class);
  }

  private boolean isLive(int index) {
    for (byte live : liveIndices()) {
      if (live == index) {
        return true;
      }
    }
    return false;
  }

  /** What the stock task learns from its first source, here from the first repair. */
  private void adoptChecksum() throws IOException {
    RepairStream first = streams.values().iterator().next();
    for (RepairStream stream : streams.values()) {
      if (stream.bytesPerChecksum() != first.bytesPerChecksum()
          || !stream.checksumType().equals(first.checksumType())) {
        throw new IOException("the survivors have different kinds of checksums");
      }
    }
    DataChecksum.Type type = first.checksumType().equals("crc32")
        ? DataChecksum.Type.CRC32 : DataChecksum.Type.CRC32C;
    int chunk = first.bytesPerChecksum();
    int wanted = parts.get(parts.wantedBufferSize, reader, Integer.class);
    parts.set(parts.checksum, reader, DataChecksum.newDataChecksum(type, chunk));
    parts.set(parts.bufferSize, reader, wanted < chunk ? chunk : wanted - wanted % chunk);
  }

  private void runRepairs() {
    try {
      task.initDecoderIfNecessary();  // it decides between heap and direct buffers
      writer.init();
      transferAll();
      for (RepairStream stream : streams.values()) {
        stream.awaitEnd();
      }
      writer.endTargetBlocks();
      counters.repairs.addAndGet(streams.size());
      LOG.info("ecpipe: repaired {} of {} through {}, repair ids {}", streams.keySet(),
          task.getBlockGroup(), client.address(), repairIds());
    } catch (Throwable e) {
      counters.brokenRepairs.addAndGet(streams.size());
      LOG.warn("ecpipe: failed to repair {} of {}, repair ids {}: {}", streams.keySet(),
          task.getBlockGroup(), repairIds(), e.toString(), e instanceof IOException ? null : e);
      task.getDatanode().getMetrics().incrECFailedReconstructionTasks();
    } finally {
      finish();
    }
  }

  private String repairIds() {
    StringBuilder ids = new StringBuilder();
    for (RepairStream stream : streams.values()) {
      ids.append(ids.length() == 0 ? "" : " ").append(stream.repairId());
    }
    return ids.toString();
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

  private void fillTargetBuffers(int count) throws IOException {
    int[] indices = writer.getRealTargetIndices();
    ByteBuffer[] buffers = writer.getRealTargetBuffers(count);
    for (int i = 0; i < indices.length; i++) {
      long left = task.getBlockLen(indices[i]) - task.getPositionInBlock();
      if (left > 0) {
        ByteBuffer part = buffers[i].duplicate();
        part.limit(part.position() + (int) Math.min(left, count));
        counters.repairedBytes.addAndGet(part.remaining());
        streams.get(indices[i]).readFully(part);
      }
    }
  }

  /** What the stock task does at its end, whatever that was. */
  private void finish() {
    float weight = task.getConf().getFloat(XMITS_WEIGHT, XMITS_WEIGHT_DEFAULT);
    task.getDatanode().decrementXmitsInProgress(Math.max((int) (task.getXmits() * weight), 1));
    DataNodeMetrics metrics = task.getDatanode().getMetrics();
    metrics.incrECReconstructionTasks();
    metrics.incrECReconstructionBytesWritten(task.getBytesWritten());
    closeStreams();
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

  private void closeStreams() {
    for (RepairStream stream : streams.values()) {
      try {
        stream.close();
      } catch (IOException e) {
        LOG.debug("ecpipe: closing a repair", e);
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs;

import io.ecpipe.client.RepairRequest;
import io.ecpipe.client.RepairStream;
import io.ecpipe.hdfs.Counters;
import io.ecpipe.hdfs.GroupFacts;
import io.ecpipe.hdfs.Locations;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hdfs.DFSUtilClient.CorruptedBlocks;
import org.apache.hadoop.hdfs.StripeReader.BlockReaderInfo;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.util.StripedBlockUtil;

/**
 * A stream of an erasure-coded file. HDFS asks createBlockReader() for the reader of each internal
 * block; those of data blocks turn to ECPipe when the block cannot be read, and HDFS sees a healthy
 * block: it reads no parity and decodes nothing. When ECPipe has nothing either, HDFS learns that
 * the block is lost and decodes as always.
 */
final class EcpipeStripedInputStream extends DFSStripedInputStream {
  /** createBlockReader() with `readTo`: Hadoop 3.3 and newer; null on 3.1 and 3.2. */
  private static final MethodHandle STOCK_WITH_END = findStockWithEnd();
  private static final long NONE = -1;

  private final EcpipeDFSClient client;
  private final ErasureCodingPolicy policy;
  /** The last byte of the group that the positional read of this thread needs (to Hadoop 3.4). */
  private final ThreadLocal<Long> lastOfPositionalRead = ThreadLocal.withInitial(() -> NONE);
  /** Since when the file is read in order; NONE: from its begin on, without a seek. */
  private long soughtTo = NONE;
  private final Counters.Session session = Counters.READS.newSession();
  /** Block and DataNode of each corrupt survivor: every repair of its group names it again. */
  private final Set<String> reportedSurvivors = ConcurrentHashMap.newKeySet();

  EcpipeStripedInputStream(EcpipeDFSClient client, String src, boolean verifyChecksum,
      ErasureCodingPolicy policy, LocatedBlocks blocks) throws IOException {
    super(client, src, verifyChecksum, policy, blocks);
    this.client = client;
    this.policy = policy;
  }

  private static MethodHandle findStockWithEnd() {
    try {
      MethodType type = MethodType.methodType(boolean.class, LocatedBlock.class, long.class,
          LocatedBlock[].class, BlockReaderInfo[].class, int.class, long.class);
      return MethodHandles.lookup().findSpecial(DFSStripedInputStream.class, "createBlockReader",
          type, EcpipeStripedInputStream.class);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** Overrides the method of Hadoop 3.1 and 3.2. */
  boolean createBlockReader(LocatedBlock block, long offset, LocatedBlock[] targets,
      BlockReaderInfo[] readers, int index) throws IOException {
    boolean readable = hasLocation(block)
        && super.createBlockReader(block, offset, targets, readers, index);
    // Positional reads do not say here where they end; they do not go beyond their last row.
    long last = lastOfPositionalRead.get();
    long readTo = last == NONE ? NONE : (row(last) + 1) * policy.getCellSize();
    return addFailover(block, offset, readers, index, readTo, readable);
  }

  /** Overrides the method of Hadoop 3.3 and newer. */
  boolean createBlockReader(LocatedBlock block, long offset, LocatedBlock[] targets,
      BlockReaderInfo[] readers, int index, long readTo) throws IOException {
    boolean readable = false;
    if (hasLocation(block)) {
      try {
        readable = (boolean) STOCK_WITH_END.invokeExact(
            this, block, offset, targets, readers, index, readTo);
      } catch (IOException | RuntimeException | Error e) {
        throw e;
      } catch (Throwable e) {
        throw new IllegalStateException(e);
      }
    }
    return addFailover(block, offset, readers, index, readTo, readable);
  }

  private static boolean hasLocation(LocatedBlock block) {
    return Locations.of(block).length > 0;
  }

  /** Whether readers[index] can be read, by whatever way. */
  private boolean addFailover(LocatedBlock block, long offset, BlockReaderInfo[] readers,
      int index, long readTo, boolean readable) throws IOException {
    if (index >= policy.getNumDataUnits()) {
      return readable;
    }
    if (!readable && !client.repairs().looksAlive()) {
      session.fallback(block.getBlock().getBlockId());
      return false;
    }
    DatanodeInfo node = readable ? readers[index].datanode : null;
    BlockReader stock = readable ? readers[index].reader : null;
    Lost lost = new Lost(block, node, index);
    readers[index] = new BlockReaderInfo(new FailoverBlockReader(
        stock, lost, rangeOf(index, offset, lost.length, readTo), session), node, offset);
    return true;
  }

  /** `readTo` is negative for a sequential read. */
  private FailoverBlockReader.Range rangeOf(int index, long offset, long length, long readTo) {
    if (readTo >= 0) {
      long end = Math.min(length, readTo);
      return FailoverBlockReader.Range.positional(offset, end, Math.min(end, needed(index, end)));
    }
    LookAhead lookAhead = new LookAhead(policy.getCellSize(), client.lookAheadBytes());
    boolean inOrder = soughtTo == NONE
        || pos - soughtTo >= client.lookAheadBytes() * policy.getNumDataUnits();
    return FailoverBlockReader.Range.sequential(
        offset, length, inOrder ? lookAhead.inOrder() : lookAhead);
  }

  /** Behind the last byte of block `index` that this thread's positional read needs. */
  private long needed(int index, long end) {
    long last = lastOfPositionalRead.get();
    if (last == NONE) {
      return end;
    }
    int cell = policy.getCellSize();
    long inLastRow = last - row(last) * cell * policy.getNumDataUnits() - (long) index * cell + 1;
    return row(last) * cell + Math.max(0, Math.min(cell, inLastRow));
  }

  /** Of a byte of the group. */
  private long row(long byteOfGroup) {
    return byteOfGroup / ((long) policy.getCellSize() * policy.getNumDataUnits());
  }

  @Override
  public synchronized void seek(long target) throws IOException {
    if (target != pos) {
      soughtTo = target;
    }
    super.seek(target);
  }

  /** An internal block that is lost or may be. */
  private final class Lost implements FailoverBlockReader.Source {
    private final LocatedStripedBlock group;
    private final ExtendedBlock block;
    private final DatanodeInfo node;
    private final int index;
    private final long length;

    Lost(LocatedBlock located, DatanodeInfo node, int index) throws IOException {
      group = (LocatedStripedBlock) getBlockAt(located.getStartOffset());
      block = located.getBlock();
      this.node = node;
      this.index = index;
      length = StripedBlockUtil.getInternalBlockLength(group.getBlockSize(), policy, index);
    }

    @Override
    public RepairStream open(long offset, long bytes) throws IOException {
      RepairRequest request;
      try {
        request = GroupFacts.of(group.getBlock(), policy, group.getBlockIndices(),
            Locations.of(group), index).target(index, offset, bytes)
            .onCorrupt(this::reportSurvivor).build();
      } catch (IllegalArgumentException e) {
        throw new IOException(e.getMessage(), e);
      }
      return client.repairs().open(request);
    }

    @Override
    public long block() {
      return block.getBlockId();
    }

    @Override
    public void reportCorrupt() {
      report(block, node);
    }

    /** Of another block of the group, which the repair would have read. */
    private void reportSurvivor(int survivor, String uuid) {
      ExtendedBlock corrupt =
          StripedBlockUtil.constructInternalBlock(group.getBlock(), policy, survivor);
      if (reportedSurvivors.add(corrupt.getBlockId() + " " + uuid)) {
        DFSClient.LOG.warn("ecpipe: {} on DataNode {} is corrupt; telling the NameNode", corrupt,
            uuid);
        report(corrupt,
            GroupFacts.node(group.getBlockIndices(), Locations.of(group), survivor, uuid));
      }
    }

    private void report(ExtendedBlock corrupt, DatanodeInfo holder) {
      try {
        client.reportChecksumFailure(src, new LocatedBlock[] {
            new LocatedBlock(corrupt, new DatanodeInfo[] {holder}, null, null, -1, true, null)});
      } catch (RuntimeException e) {
        DFSClient.LOG.warn("ecpipe: cannot tell the NameNode that {} is corrupt", corrupt, e);
      }
    }

    @Override
    public String toString() {
      return block + " (index " + index + ") of " + src;
    }
  }

  /** Positional reads; Hadoop 3.1 to 3.4. Of those only 3.1 and 3.2 do not say where they end. */
  @Override
  protected void fetchBlockByteRange(LocatedBlock block, long start, long end, ByteBuffer buffer,
      CorruptedBlocks corrupted) throws IOException {
    lastOfPositionalRead.set(end);
    try {
      super.fetchBlockByteRange(block, start, end, buffer, corrupted);
    } finally {
      lastOfPositionalRead.remove();
    }
  }

  @Override
  public synchronized void close() throws IOException {
    try {
      super.close();
    } finally {
      session.logOnce(src);
    }
  }
}

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
  private static final long NO_END = -1;

  private final EcpipeDFSClient client;
  private final ErasureCodingPolicy policy;
  /** Where the positional read of this thread ends in its internal blocks (Hadoop 3.1, 3.2). */
  private final ThreadLocal<Long> endOfPositionalRead = ThreadLocal.withInitial(() -> NO_END);
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
    return addFailover(block, offset, readers, index, endOfPositionalRead.get(), readable);
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
      session.fallback();
      return false;
    }
    DatanodeInfo node = readable ? readers[index].datanode : null;
    BlockReader stock = readable ? readers[index].reader : null;
    Lost lost = new Lost(block, node, index);
    long end = lost.length;
    FailoverBlockReader.Range range = readTo >= 0 && readTo < end
        ? new FailoverBlockReader.Range(offset, readTo, readTo - offset)
        : new FailoverBlockReader.Range(offset, end, client.lookAheadBytes());
    readers[index] = new BlockReaderInfo(
        new FailoverBlockReader(stock, lost, range, session), node, offset);
    return true;
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

  /** Positional reads; Hadoop 3.1 to 3.4. Only 3.1 and 3.2 do not say where they end. */
  @Override
  protected void fetchBlockByteRange(LocatedBlock block, long start, long end, ByteBuffer buffer,
      CorruptedBlocks corrupted) throws IOException {
    // A range that ends in row r needs no internal block beyond the end of that row's cells.
    long row = end / ((long) policy.getCellSize() * policy.getNumDataUnits());
    long lastCellStart = row * policy.getCellSize();
    boolean oneCell = start / policy.getCellSize() == end / policy.getCellSize();
    endOfPositionalRead.set(oneCell
        ? lastCellStart + end % policy.getCellSize() + 1 : lastCellStart + policy.getCellSize());
    try {
      super.fetchBlockByteRange(block, start, end, buffer, corrupted);
    } finally {
      endOfPositionalRead.set(NO_END);
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

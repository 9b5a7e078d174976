// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs;

import io.ecpipe.client.RepairStream;
import io.ecpipe.hdfs.Counters;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.ReadOption;
import org.apache.hadoop.hdfs.shortcircuit.ClientMmap;
import org.apache.hadoop.util.DataChecksum;

/**
 * Reads an internal block from its DataNode for as long as that works, and then, from the same
 * byte on, through ECPipe. When both fail the reader throws what the DataNode's reader threw.
 *
 * A read fills the buffer or fails and leaves its position alone: Hadoop 3.1 decodes wrongly into
 * buffers that a failed read has moved. One thread reads; close() may come from any.
 */
final class FailoverBlockReader implements BlockReader {
  /** Where the bytes of a lost block come from. */
  interface Source {
    RepairStream open(long offset, long bytes) throws IOException;

    /** The block's id. */
    long block();

    /** Tells the NameNode that the replica that was read is corrupt. */
    void reportCorrupt();
  }

  /** What is read, in bytes of the internal block. */
  static final class Range {
    private final long start;
    private final long end;
    private final long sure;
    private final LookAhead lookAhead;

    private Range(long start, long end, long sure, LookAhead lookAhead) {
      this.start = start;
      this.end = end;
      this.sure = sure;
      this.lookAhead = lookAhead;
    }

    /** HDFS says that it reads up to `end`, and it needs no byte from `sure` on. */
    static Range positional(long start, long end, long sure) {
      return new Range(start, end, sure, new LookAhead(1, 0));
    }

    /** HDFS reads on until somebody seeks away, whole cells each time. */
    static Range sequential(long start, long end, LookAhead lookAhead) {
      return new Range(start, end, start, lookAhead);
    }
  }

  private final Source source;
  private final Counters.Session session;
  private final Range range;
  private final long end;
  private long position;
  private BlockReader stock;  // null once it has failed
  private IOException stockFailure;
  private RepairStream repair;  // guarded by this, as is `closed`
  private long repairEnd;
  private boolean closed;

  FailoverBlockReader(BlockReader stock, Source source, Range range, Counters.Session session) {
    this.stock = stock;
    this.source = source;
    this.session = session;
    this.range = range;
    position = range.start;
    end = range.end;
  }

  @Override
  public int read(ByteBuffer buffer) throws IOException {
    int wanted = (int) Math.min(buffer.remaining(), end - position);
    if (wanted <= 0) {
      return buffer.hasRemaining() ? -1 : 0;
    }
    int start = buffer.position();
    int limit = buffer.limit();
    buffer.limit(start + wanted);
    long before = position;
    try {
      fill(buffer);
      return wanted;
    } catch (IOException e) {
      buffer.position(start);
      position = before;
      throw e;
    } finally {
      buffer.limit(limit);
    }
  }

  private void fill(ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining() && stock != null) {
      readStock(buffer);
    }
    while (buffer.hasRemaining()) {
      readRepair(buffer);
    }
  }

  private void readStock(ByteBuffer buffer) throws IOException {
    int start = buffer.position();
    try {
      int count = stock.read(buffer);
      if (count < 0) {
        throw new EOFException("the DataNode has fewer bytes than the block");
      }
      position += count;
    } catch (IOException e) {
      buffer.position(start);
      leaveStock(e);
    }
  }

  private void leaveStock(IOException failure) {
    DFSClient.LOG.info("ecpipe: cannot read {} from byte {} on: {}", source, position,
        failure.toString());
    stockFailure = failure;
    closeStock();
  }

  private void closeStock() {
    try {
      stock.close();
    } catch (IOException e) {
      DFSClient.LOG.debug("ecpipe: closing a reader", e);
    }
    stock = null;
  }

  private void readRepair(ByteBuffer buffer) throws IOException {
    try {
      RepairStream stream = currentRepair(buffer.remaining());
      int limit = buffer.limit();
      int count = (int) Math.min(buffer.remaining(), repairEnd - position);
      buffer.limit(buffer.position() + count);
      stream.readFully(buffer);
      buffer.limit(limit);
      position += count;
      session.repaired(count);
    } catch (IOException e) {
      boolean begun = closeRepair();
      session.failed(source.block(), begun);
      DFSClient.LOG.info("ecpipe: HDFS decodes {} itself: {}", source, e.toString());
      throw stockFailure != null ? stockFailure : e;
    }
  }

  private RepairStream currentRepair(int wanted) throws IOException {
    if (repair != null && position < repairEnd) {
      return repair;
    }
    if (repair != null) {
      repair.awaitEnd();
      closeRepair();
    }
    long next = Math.max(range.sure, range.lookAhead.next(position, wanted));
    repairEnd = Math.min(end, next);
    RepairStream opened = source.open(position, repairEnd - position);
    session.begun(repairEnd - position);
    if (stockFailure instanceof ChecksumException) {
      // HDFS would have reported it, had it seen the failure.
      source.reportCorrupt();
      stockFailure = new IOException("the block is corrupt; the NameNode was told", stockFailure);
    }
    return keep(opened);
  }

  private synchronized RepairStream keep(RepairStream opened) throws IOException {
    if (closed) {
      opened.close();
      throw new IOException("the reader was closed");
    }
    repair = opened;
    return opened;
  }

  /** Whether there was one. */
  private synchronized boolean closeRepair() {
    if (repair == null) {
      return false;
    }
    try {
      repair.close();
    } catch (IOException e) {
      DFSClient.LOG.debug("ecpipe: closing a repair", e);
    }
    repair = null;
    return true;
  }

  @Override
  public int read(byte[] bytes, int offset, int length) throws IOException {
    return read(ByteBuffer.wrap(bytes, offset, length));
  }

  /** Skips all of `count`, which must not lead past the end. */
  @Override
  public long skip(long count) throws IOException {
    long left = count;
    while (left > 0 && stock != null) {
      try {
        long skipped = stock.skip(left);
        if (skipped <= 0) {
          throw new EOFException("the DataNode has fewer bytes than the block");
        }
        position += skipped;
        left -= skipped;
      } catch (IOException e) {
        leaveStock(e);
      }
    }
    if (left > 0) {
      position += left;
      closeRepair();  // the next one begins behind what is skipped
      range.lookAhead.restart();
    }
    return count;
  }

  @Override
  public int available() {
    return stock != null ? stock.available() : 0;
  }

  @Override
  public void readFully(byte[] bytes, int offset, int length) throws IOException {
    if (read(ByteBuffer.wrap(bytes, offset, length)) < length) {
      throw new EOFException("read past the end of a block");
    }
  }

  @Override
  public int readAll(byte[] bytes, int offset, int length) throws IOException {
    return read(ByteBuffer.wrap(bytes, offset, length));
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    closeRepair();
    BlockReader open = stock;
    if (open != null) {
      try {
        open.close();
      } catch (IOException e) {
        DFSClient.LOG.debug("ecpipe: closing a reader", e);
      }
    }
  }

  @Override
  public boolean isShortCircuit() {
    return stock != null && stock.isShortCircuit();
  }

  @Override
  public ClientMmap getClientMmap(EnumSet<ReadOption> options) {
    return null;  // as all readers that do not map files
  }

  @Override
  public DataChecksum getDataChecksum() {
    return stock != null ? stock.getDataChecksum() : null;
  }

  /** Repaired bytes count as coming from far: nobody knows of one place where they come from. */
  @Override
  public int getNetworkDistance() {
    return stock != null ? stock.getNetworkDistance() : Integer.MAX_VALUE;
  }
}

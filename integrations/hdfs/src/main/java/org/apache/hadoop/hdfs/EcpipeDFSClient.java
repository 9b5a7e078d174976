// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs;

import io.ecpipe.client.RepairClient;
import io.ecpipe.hdfs.Locations;
import io.ecpipe.hdfs.Settings;
import java.io.IOException;
import java.net.URI;
import java.util.Arrays;
import java.util.ListIterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.HdfsPathHandle;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.util.StripedBlockUtil;

/** A DFSClient whose streams of erasure-coded files read lost blocks through ECPipe. */
public final class EcpipeDFSClient extends DFSClient {
  private final RepairClient repairs;
  private final long lookAheadBytes;

  /** IllegalArgumentException where ECPipe cannot be set up; then there is no client to close. */
  public EcpipeDFSClient(URI nameNode, Configuration conf, FileSystem.Statistics statistics)
      throws IOException {
    this(nameNode, conf, statistics, Settings.client(conf, "hdfs-client", false),
        Settings.positive(conf, Settings.LOOK_AHEAD, Settings.LOOK_AHEAD_DEFAULT));
  }

  private EcpipeDFSClient(URI nameNode, Configuration conf, FileSystem.Statistics statistics,
      RepairClient repairs, long lookAheadBytes) throws IOException {
    super(nameNode, conf, statistics);
    this.repairs = repairs;
    this.lookAheadBytes = lookAheadBytes;
  }

  /** Gives an initialised file system such a client instead of its own, which is closed. */
  public static void install(DistributedFileSystem fileSystem, URI nameNode, Configuration conf,
      FileSystem.Statistics statistics) throws IOException {
    DFSClient stock = fileSystem.dfs;
    fileSystem.dfs = new EcpipeDFSClient(nameNode, conf, statistics);
    stock.close();
  }

  RepairClient repairs() {
    return repairs;
  }

  long lookAheadBytes() {
    return lookAheadBytes;
  }

  @Override
  public DFSInputStream open(String src, int bufferSize, boolean verifyChecksum)
      throws IOException {
    return wrap(super.open(src, bufferSize, verifyChecksum), src, verifyChecksum);
  }

  @Override
  public DFSInputStream open(HdfsPathHandle handle, int bufferSize, boolean verifyChecksum)
      throws IOException {
    return wrap(super.open(handle, bufferSize, verifyChecksum), handle.getPath(), verifyChecksum);
  }

  private DFSInputStream wrap(DFSInputStream stock, String src, boolean verifyChecksum)
      throws IOException {
    LocatedBlocks blocks = stock.locatedBlocks;
    // A block that is being written has no length that could be relied on.
    if (!(stock instanceof DFSStripedInputStream) || blocks == null
        || blocks.isUnderConstruction()) {
      return stock;
    }
    stock.close();
    nameLostBlocks(blocks);  // those of a path handle have not passed getLocatedBlocks()
    return new EcpipeStripedInputStream(
        this, src, verifyChecksum, blocks.getErasureCodingPolicy(), blocks);
  }

  /** Every look-up and refresh of a stream's blocks comes through here. */
  @Override
  public LocatedBlocks getLocatedBlocks(String src, long start, long length)
      throws IOException {
    LocatedBlocks blocks = super.getLocatedBlocks(src, start, length);
    if (blocks != null && blocks.getErasureCodingPolicy() != null) {
      nameLostBlocks(blocks);
    }
    return blocks;
  }

  private static void nameLostBlocks(LocatedBlocks blocks) {
    ListIterator<LocatedBlock> groups = blocks.getLocatedBlocks().listIterator();
    while (groups.hasNext()) {
      LocatedBlock block = groups.next();
      if (block instanceof LocatedStripedBlock) {
        groups.set(withLostBlocks((LocatedStripedBlock) block, blocks.getErasureCodingPolicy()));
      }
    }
  }

  /**
   * HDFS's readers pass over data blocks that have no location, before anybody is asked. So the
   * indices of such blocks are added behind those that have one: the block then has no location,
   * but it has a name.
   */
  private static LocatedStripedBlock withLostBlocks(
      LocatedStripedBlock group, ErasureCodingPolicy policy) {
    byte[] indices = group.getBlockIndices();
    int count = indices.length;
    boolean[] known = new boolean[policy.getNumDataUnits() + policy.getNumParityUnits()];
    for (byte index : indices) {
      known[index] = true;
    }
    byte[] all = Arrays.copyOf(indices, count + policy.getNumDataUnits());
    for (int i = 0; i < policy.getNumDataUnits(); i++) {
      if (!known[i]
          && StripedBlockUtil.getInternalBlockLength(group.getBlockSize(), policy, i) > 0) {
        all[count++] = (byte) i;
      }
    }
    return count == indices.length ? group : withIndices(group, Arrays.copyOf(all, count));
  }

  private static LocatedStripedBlock withIndices(LocatedStripedBlock group, byte[] indices) {
    LocatedStripedBlock copy = new LocatedStripedBlock(group.getBlock(), Locations.of(group),
        group.getStorageIDs(), group.getStorageTypes(), indices, group.getStartOffset(),
        group.isCorrupt(), group.getCachedLocations());
    copy.setBlockToken(group.getBlockToken());
    copy.setBlockTokens(group.getBlockTokens());
    return copy;
  }
}

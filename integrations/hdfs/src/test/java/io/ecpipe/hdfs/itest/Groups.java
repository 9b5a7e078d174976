// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs.itest;

import io.ecpipe.hdfs.Locations;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;

/** Where the NameNode says that the internal blocks of a file are. */
final class Groups {
  private Groups() {}

  /** A word a group: POOL,GROUP,STAMP,BYTES followed by ,INDEX=UUID for each location. */
  static String describe(Configuration conf, String path) throws IOException {
    List<String> words = new ArrayList<>();
    try (FileSystem fs = FileSystem.newInstance(conf)) {
      LocatedBlocks blocks = ((DistributedFileSystem) fs).getClient()
          .getNamenode().getBlockLocations(new Path(path).toUri().getPath(), 0, Long.MAX_VALUE);
      for (LocatedBlock block : blocks.getLocatedBlocks()) {
        words.add(describe((LocatedStripedBlock) block));
      }
    }
    return String.join(" ", words);
  }

  private static String describe(LocatedStripedBlock group) {
    StringBuilder word = new StringBuilder();
    word.append(group.getBlock().getBlockPoolId()).append(',')
        .append(group.getBlock().getBlockId()).append(',')
        .append(group.getBlock().getGenerationStamp()).append(',')
        .append(group.getBlockSize());
    DatanodeInfo[] nodes = Locations.of(group);
    for (int i = 0; i < nodes.length; i++) {
      word.append(',').append(group.getBlockIndices()[i]).append('=')
          .append(nodes[i].getDatanodeUuid());
    }
    return word.toString();
  }
}

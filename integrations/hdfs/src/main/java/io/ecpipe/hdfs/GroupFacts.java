// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import io.ecpipe.client.RepairRequest;
import java.util.Arrays;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;

/** What HDFS knows about a block group, as the beginning of a request. */
public final class GroupFacts {
  private GroupFacts() {}

  /**
   * A request without its range. `indices[i]` is the internal block that `nodes[i]` has; the
   * targets' own replicas are no survivors and are left out. IllegalArgumentException for a codec
   * that ECPipe does not have.
   */
  public static RepairRequest.Builder of(ExtendedBlock group, ErasureCodingPolicy policy,
      byte[] indices, DatanodeInfo[] nodes, int... targets) {
    RepairRequest.Builder request = new RepairRequest.Builder()
        .group(group.getBlockPoolId(), group.getBlockId(), group.getGenerationStamp(),
            group.getNumBytes())
        .policy(policy.getCodecName(), policy.getNumDataUnits(), policy.getNumParityUnits(),
            policy.getCellSize());
    for (int i = 0; i < Math.min(indices.length, nodes.length); i++) {
      byte index = indices[i];
      if (Arrays.stream(targets).noneMatch(target -> target == index)) {
        request.source(index, nodes[i].getDatanodeUuid());
      }
    }
    return request;
  }

  /** The node that was named as a source: one of those that were given to of(). */
  public static DatanodeInfo node(byte[] indices, DatanodeInfo[] nodes, int index, String uuid) {
    for (int i = 0; i < Math.min(indices.length, nodes.length); i++) {
      if (indices[i] == index && nodes[i].getDatanodeUuid().equals(uuid)) {
        return nodes[i];
      }
    }
    throw new IllegalArgumentException("block " + index + " at " + uuid + " is no source");
  }
}

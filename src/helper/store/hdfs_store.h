// SPDX-License-Identifier: Apache-2.0
// The blocks of a DataNode of HDFS-3, read from its volumes. Block "<pool>.blk_<id>_<stamp>"
// (model/systems/hdfs_block.h) is the replica
//
//   <volume>/current/<pool>/current/finalized/subdirX/subdirY/blk_<id>
//
// with X and Y computed from the id, and blk_<id>_<stamp>.meta beside it. The store does not have
// replicas that are being written, or that have another generation stamp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "helper/store/block_store.h"

namespace ecpipe {

// `volumes` are the directories of dfs.datanode.data.dir. Symbolic links are not followed below
// them, and no directory is listed to find a block. The process must be allowed to read them: as a
// rule it runs as the DataNode's user.
//
// The store's storage_id() is the DataNode's UUID. Open() checks replicas as OpenHdfsReplica says.
// Create() fails with FAILED_PRECONDITION, because HDFS writes its blocks itself. TakeInventory()
// and Listing() return at once: a thread of the store scans the volumes every `scan_interval`
// (hdfs_scan.h).
//
// A volume that is not a readable directory, or lacks the VERSION file of a DataNode, has failed.
// It is used when it has come back, which each scan looks for; TakeInventory() names it meanwhile.
// Open() waits RootCalls::kPatience for a volume that hangs; this call does too, and longer where
// none can be used yet (RootCalls::AwaitFirst): it counts as failed then. Scans wait for one that
// hangs later: what is listed stays as it was. An error here names a volume: none can be used.
// INVALID_ARGUMENT: they belong to different DataNodes.
absl::StatusOr<std::unique_ptr<BlockStore>> OpenHdfsStore(const std::vector<std::string>& volumes,
                                                          Duration scan_interval);

}  // namespace ecpipe

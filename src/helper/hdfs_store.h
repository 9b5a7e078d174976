// SPDX-License-Identifier: Apache-2.0
// The blocks of a DataNode of HDFS-3, read from its volumes. Block "<pool>.blk_<id>_<stamp>"
// (common/hdfs_block.h) is the replica
//
//   <volume>/current/<pool>/current/finalized/subdirX/subdirY/blk_<id>
//
// with X and Y from the id, and blk_<id>_<stamp>.meta beside it. Replicas that are being written,
// and those of other generations, are not there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "helper/block_store.h"

namespace ecpipe {

// `volumes` are the directories of dfs.datanode.data.dir. Symbolic links are not followed below
// them, and no directory is listed to find a block. The process must be allowed to read them: as a
// rule it runs as the DataNode's user.
//
// The store's storage_id() is the DataNode's UUID. Open() as that of every store; what it returns
// is checked as OpenHdfsReplica says. Create() is FAILED_PRECONDITION: HDFS writes its blocks
// itself. TakeInventory() and Listing() return at once: a thread of the store scans the volumes
// each `scan_interval` (hdfs_scan.h).
//
// An error here names the volume: not a readable directory, or without the DataNode's VERSION file.
// INVALID_ARGUMENT: two volumes are of two DataNodes.
absl::StatusOr<std::unique_ptr<BlockStore>> OpenHdfsStore(const std::vector<std::string>& volumes,
                                                          Duration scan_interval);

}  // namespace ecpipe

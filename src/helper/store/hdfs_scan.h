// SPDX-License-Identifier: Apache-2.0
// Lists the blocks that a DataNode has on its volumes, again and again at little cost: a directory
// is listed only if its modification time says that files were added or removed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "helper/store/block_listing.h"
#include "helper/store/block_store.h"
#include "helper/store/hdfs_volume.h"

namespace ecpipe {

struct HdfsContents {
  StoreInventory inventory;                    // counts of all finalized replicas
  std::shared_ptr<const BlockListing> blocks;  // blocks of block groups; shared with later scans
};

// Of the name of a file: "blk_<id>", of which there is one a replica.
std::optional<int64_t> IdOfReplica(const std::string& name);
// "blk_<id>_<stamp>.meta": the id and the generation stamp.
std::optional<std::pair<int64_t, uint64_t>> IdOfMeta(const std::string& name);

// Used by one thread. Keeps 32 bytes for each block, and twice that while blocks have changed.
class HdfsScan {
 public:
  explicit HdfsScan(std::shared_ptr<HdfsVolumes> volumes) : volumes_(std::move(volumes)) {}

  // Looks at each of the 32 x 32 directories of each pool and volume. A replica of a block group
  // counts if exactly one .meta file is beside it, whose name has the generation stamp; of two
  // replicas with the same id on two volumes the newer generation counts. Replicas that cannot be
  // read do not count. CANCELLED: `stop` returned true; it is called for each directory.
  // RESOURCE_EXHAUSTED: the process has no descriptor left; nothing is known then.
  absl::StatusOr<HdfsContents> Take(const std::function<bool()>& stop);

  // Directories that were read since the beginning, for tests.
  uint64_t directories_listed() const { return directories_listed_; }

 private:
  // A directory of replicas.
  struct Leaf {
    int64_t modified_unix_ns = 0;
    bool settled = false;  // the time is old enough: no file can have been added at that same time
    StoreInventory inventory;
    std::vector<ListedBlock> blocks;
  };
  using Leaves = std::map<int, Leaf>;  // by the number of the directory, of 32 x 32
  using PoolOfVolume = std::pair<size_t, std::string>;

  absl::Status ScanPool(int finalized, const std::function<bool()>& stop, Leaves* leaves);
  absl::Status ScanLeaf(int parent, const std::string& name, int number, Leaves* leaves);
  static absl::Status List(int parent, const std::string& name, Leaf* leaf);
  void Gather();

  const std::shared_ptr<HdfsVolumes> volumes_;
  std::map<PoolOfVolume, Leaves> pools_;
  HdfsContents contents_;  // of the latest scan
  bool changed_ = true;    // since contents_ was gathered
  uint64_t directories_listed_ = 0;
};

}  // namespace ecpipe

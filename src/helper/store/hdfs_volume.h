// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "helper/store/root_calls.h"
#include "model/systems/hdfs_block.h"

namespace ecpipe {

// A directory of a DataNode's dfs.datanode.data.dir.
struct HdfsVolume {
  std::string path;
  UniqueFd fd;  // files are opened below this directory, even if the path leads elsewhere by then
  std::string datanode_uuid;
};
// Errors name the path. NOT_FOUND also if no DataNode has used the directory yet.
absl::StatusOr<HdfsVolume> OpenHdfsVolume(const std::string& path);

// All volumes of a DataNode. Some may have failed, which HDFS tolerates, too
// (dfs.datanode.failed.volumes.tolerated): the others are used, and a failed one again when it has
// come back. Thread-safe.
class HdfsVolumes {
 public:
  // Each in its place; null: it has failed. Shared: a reader keeps a volume that fails meanwhile.
  using Opened = std::vector<std::shared_ptr<const HdfsVolume>>;

  // Waits for those that hang as RootCalls::AwaitFirst does. Logs a warning for each that cannot be
  // used. The error of the first one if that is true of all. INVALID_ARGUMENT: they belong to two
  // DataNodes.
  static absl::StatusOr<std::shared_ptr<HdfsVolumes>> Open(std::vector<std::string> paths);

  // Looks which volumes can be used now, and logs what has changed. Waits for a volume that is used
  // and hangs, and RootCalls::kPatience for one that has failed.
  void Look();
  Opened opened();
  // "PATH: reason" for each that has failed.
  std::vector<std::string> failed();
  const std::string& datanode_uuid() const { return datanode_uuid_; }

 private:
  struct Place {
    std::shared_ptr<const HdfsVolume> volume;  // null: `status` says why
    absl::Status status;
  };

  using Openers = std::vector<std::unique_ptr<RootCalls>>;  // of each volume, in its place

  HdfsVolumes(std::vector<std::string> paths, std::string datanode_uuid, Openers openers)
      : paths_(std::move(paths)),
        datanode_uuid_(std::move(datanode_uuid)),
        openers_(std::move(openers)),
        places_(paths_.size()) {}
  void Note(size_t i, Place place);

  const std::vector<std::string> paths_;
  const std::string datanode_uuid_;
  const Openers openers_;
  Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
};

// The text of a VERSION file that is open.
absl::StatusOr<std::string> ReadVersionFile(int file);
// The value of a key in it; nullopt: it does not have the key.
std::optional<std::string> ValueInVersion(const std::string& version_file, const std::string& key);
// The value of datanodeUuid in the text of a VERSION file. NOT_FOUND: there is no valid one.
absl::StatusOr<std::string> DatanodeUuidIn(const std::string& version_file);

// Where a replica is below its volume, as names of directories.
std::vector<std::string> ReplicaDirectory(const HdfsBlock& block);

// The directory that these names lead to, without following a symbolic link.
absl::StatusOr<UniqueFd> OpenBelow(int directory, const std::vector<std::string>& names);

}  // namespace ecpipe

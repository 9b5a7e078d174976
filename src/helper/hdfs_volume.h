// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/hdfs_block.h"
#include "common/unique_fd.h"

namespace ecpipe {

// A directory of a DataNode's dfs.datanode.data.dir.
struct HdfsVolume {
  std::string path;
  UniqueFd fd;  // files are opened below this directory, even if the path leads elsewhere by then
  std::string datanode_uuid;
};
using HdfsVolumes = std::vector<HdfsVolume>;

// Errors name the path. NOT_FOUND also if no DataNode has used the directory yet.
absl::StatusOr<HdfsVolume> OpenHdfsVolume(const std::string& path);

// The value of datanodeUuid in the text of a VERSION file. NOT_FOUND: there is no valid one.
absl::StatusOr<std::string> DatanodeUuidIn(const std::string& version_file);

// Where a replica is below its volume, as names of directories.
std::vector<std::string> ReplicaDirectory(const HdfsBlock& block);

// The directory that these names lead to, without following a symbolic link.
absl::StatusOr<UniqueFd> OpenBelow(int directory, const std::vector<std::string>& names);

}  // namespace ecpipe

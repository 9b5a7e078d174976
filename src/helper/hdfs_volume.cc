// SPDX-License-Identifier: Apache-2.0
#include "helper/hdfs_volume.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "common/block_id.h"
#include "common/file_io.h"
#include "common/status.h"

namespace ecpipe {
namespace {

constexpr uint64_t kMaxVersionBytes = 64 << 10;  // HDFS writes some 250 bytes

}  // namespace

absl::StatusOr<std::string> DatanodeUuidIn(const std::string& version_file) {
  constexpr char kKey[] = "datanodeUuid=";
  std::istringstream lines(version_file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kKey, 0) != 0) continue;
    std::string uuid = line.substr(sizeof kKey - 1);
    if (!uuid.empty() && uuid.back() == '\r') uuid.pop_back();
    if (ValidateBlockId(uuid).ok()) return uuid;
  }
  return absl::NotFoundError("its VERSION file has no valid datanodeUuid");
}

absl::StatusOr<HdfsVolume> OpenHdfsVolume(const std::string& path) {
  HdfsVolume volume{path, UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), ""};
  if (!volume.fd.valid()) return ErrnoStatus(errno, "open volume " + path);
  const std::string version = path + "/current/VERSION";
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd file, OpenForReading(version));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(file.get()));
  std::vector<uint8_t> text(static_cast<size_t>(std::min(bytes, kMaxVersionBytes)));
  ECPIPE_RETURN_IF_ERROR(Annotate(ReadFully(file.get(), 0, text), version));
  absl::StatusOr<std::string> uuid = DatanodeUuidIn({text.begin(), text.end()});
  if (!uuid.ok()) return Annotate(uuid.status(), version);
  volume.datanode_uuid = *std::move(uuid);
  return volume;
}

std::vector<std::string> ReplicaDirectory(const HdfsBlock& block) {
  // As HDFS: 5 bits each; ids are signed, and shifting them keeps the sign.
  const auto subdir = [&](int shift) {
    return "subdir" + std::to_string((block.id >> shift) & 0x1f);
  };
  return {"current", block.pool, "current", "finalized", subdir(16), subdir(8)};
}

absl::StatusOr<UniqueFd> OpenBelow(int directory, const std::vector<std::string>& names) {
  UniqueFd at;
  for (const std::string& name : names) {
    const int from = at.valid() ? at.get() : directory;
    UniqueFd next(::openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!next.valid()) return ErrnoStatus(errno, "open directory " + name);
    at = std::move(next);
  }
  return at;
}

}  // namespace ecpipe

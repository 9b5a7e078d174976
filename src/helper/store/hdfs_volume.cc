// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_volume.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>

#include "base/clock.h"
#include "base/fault_points.h"
#include "base/file_io.h"
#include "base/process/log.h"
#include "base/status.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

constexpr uint64_t kMaxVersionBytes = 64 << 10;  // HDFS writes some 250 bytes

RootCalls::Pending<HdfsVolume> BeginOpening(RootCalls* opener, const std::string& path) {
  return opener->Begin<HdfsVolume>([path] { return OpenHdfsVolume(path); });
}

bool SameDirectory(int one, int other) {
  struct stat a{};
  struct stat b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

std::optional<std::string> ValueInVersion(const std::string& version_file, const std::string& key) {
  std::istringstream lines(version_file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + "=")) continue;
    std::string value = line.substr(key.size() + 1);
    if (!value.empty() && value.back() == '\r') value.pop_back();
    return value;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> DatanodeUuidIn(const std::string& version_file) {
  const std::optional<std::string> uuid = ValueInVersion(version_file, "datanodeUuid");
  if (uuid && ValidateBlockId(*uuid).ok()) return *uuid;
  return absl::NotFoundError("its VERSION file has no valid datanodeUuid");
}

absl::StatusOr<std::string> ReadVersionFile(int file) {
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(file));
  std::vector<uint8_t> text(static_cast<size_t>(std::min(bytes, kMaxVersionBytes)));
  ECPIPE_RETURN_IF_ERROR(ReadFully(file, 0, text));
  return std::string(text.begin(), text.end());
}

absl::StatusOr<HdfsVolume> OpenHdfsVolume(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(FaultPoint(("hdfs_store.volume:" + path).c_str()));
  HdfsVolume volume{path, UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), ""};
  if (!volume.fd.valid()) return ErrnoStatus(errno, "open volume " + path);
  const std::string version = path + "/current/VERSION";
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd file, OpenForReading(version));
  const absl::StatusOr<std::string> text = ReadVersionFile(file.get());
  if (!text.ok()) return Annotate(text.status(), version);
  absl::StatusOr<std::string> uuid = DatanodeUuidIn(*text);
  if (!uuid.ok()) return Annotate(uuid.status(), version);
  volume.datanode_uuid = *std::move(uuid);
  return volume;
}

absl::StatusOr<std::shared_ptr<HdfsVolumes>> HdfsVolumes::Open(std::vector<std::string> paths) {
  Openers openers;
  std::vector<RootCalls::Pending<HdfsVolume>> pending;
  for (const std::string& path : paths) {
    openers.push_back(std::make_unique<RootCalls>(path, RootCalls::Options{.max_threads = 1}));
    pending.push_back(BeginOpening(openers.back().get(), path));
  }
  std::vector<absl::StatusOr<HdfsVolume>> opened = RootCalls::AwaitFirst(std::move(pending));
  std::string uuid;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!opened[i].ok()) continue;
    const std::string& own = opened[i]->datanode_uuid;
    if (!uuid.empty() && uuid != own) {
      return absl::InvalidArgumentError("volume " + paths[i] + " belongs to DataNode " + own +
                                        ", but other volumes in [helper] roots belong to " + uuid +
                                        "; name the volumes of one DataNode");
    }
    uuid = own;
  }
  if (uuid.empty()) {
    return paths.empty() ? absl::InvalidArgumentError("[helper] roots names no volume")
                         : opened.front().status();
  }
  std::shared_ptr<HdfsVolumes> volumes(new HdfsVolumes(std::move(paths), uuid, std::move(openers)));
  for (size_t i = 0; i < opened.size(); ++i) {
    Place place{nullptr, opened[i].status()};
    if (opened[i].ok()) place.volume = std::make_shared<HdfsVolume>(*std::move(opened[i]));
    volumes->Note(i, std::move(place));
  }
  return volumes;
}

void HdfsVolumes::Look() {
  const Opened before = opened();
  std::map<size_t, RootCalls::Pending<HdfsVolume>> pending;  // of those that have failed
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (before[i] == nullptr) pending[i] = BeginOpening(openers_[i].get(), paths_[i]);
  }
  const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
  for (size_t i = 0; i < paths_.size(); ++i) {
    absl::StatusOr<HdfsVolume> now =
        before[i] == nullptr ? pending.at(i).Await(deadline) : OpenHdfsVolume(paths_[i]);
    if (absl::IsResourceExhausted(now.status())) continue;  // it is this process that has failed
    if (now.ok() && now->datanode_uuid != datanode_uuid_) {
      now = absl::InvalidArgumentError("volume " + paths_[i] + " belongs to DataNode " +
                                       now->datanode_uuid + ", not to " + datanode_uuid_);
    }
    if (!now.ok()) {
      Note(i, {nullptr, now.status()});
    } else if (before[i] == nullptr || !SameDirectory(before[i]->fd.get(), now->fd.get())) {
      Note(i, {std::make_shared<HdfsVolume>(*std::move(now)), absl::OkStatus()});
    }
  }
}

void HdfsVolumes::Note(size_t i, Place place) {
  bool failed = false;
  bool back = false;
  {
    MutexLock lock(&mutex_);
    Place& known = places_[i];
    failed = place.volume == nullptr && known.status.ok();
    back = place.volume != nullptr && !known.status.ok();
    known = place;
  }
  if (failed) {
    Log(LogLevel::kWarning, "store.volume_failed",
        {{"volume", paths_[i]}, {"status", StatusText(place.status)}});
  }
  if (back) Log(LogLevel::kInfo, "store.volume_back", {{"volume", paths_[i]}});
}

HdfsVolumes::Opened HdfsVolumes::opened() {
  MutexLock lock(&mutex_);
  Opened opened;
  for (const Place& place : places_) opened.push_back(place.volume);
  return opened;
}

std::vector<std::string> HdfsVolumes::failed() {
  MutexLock lock(&mutex_);
  std::vector<std::string> failed;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].volume != nullptr) continue;
    failed.push_back(paths_[i] + ": " + std::string(places_[i].status.message()));
  }
  return failed;
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

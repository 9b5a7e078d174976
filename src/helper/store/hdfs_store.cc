// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/fault_points.h"
#include "base/status.h"
#include "helper/store/hdfs_inventory.h"
#include "helper/store/hdfs_replica.h"
#include "helper/store/hdfs_volume.h"
#include "helper/store/hung_reads.h"
#include "helper/store/root_calls.h"
#include "model/systems/hdfs_block.h"

namespace ecpipe {
namespace {

// O_NONBLOCK: a FIFO under this name must not hang the open; it is refused then.
absl::StatusOr<UniqueFd> OpenRegular(int directory, const std::string& name) {
  UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + name);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat " + name);
  if (!S_ISREG(info.st_mode)) return absl::PermissionDeniedError(name + " is not a regular file");
  return fd;
}

using Reader = std::unique_ptr<BlockReader>;

absl::StatusOr<Reader> OpenOn(const HdfsVolume& volume, const std::string& block_id,
                              const HdfsBlock& block) {
  ECPIPE_RETURN_IF_ERROR(FaultPoint(("hdfs_store.open:" + volume.path).c_str()));
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd directory,
                          OpenBelow(volume.fd.get(), ReplicaDirectory(block)));
  const std::string name = "blk_" + std::to_string(block.id);
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd data, OpenRegular(directory.get(), name));
  absl::StatusOr<UniqueFd> meta =
      OpenRegular(directory.get(), name + "_" + std::to_string(block.stamp) + ".meta");
  if (absl::IsNotFound(meta.status())) {
    return absl::NotFoundError("the replica there has another generation stamp");
  }
  ECPIPE_RETURN_IF_ERROR(meta.status());
  return OpenHdfsReplica(block_id, std::move(data), *std::move(meta));
}

class HdfsStore : public BlockStore {
 public:
  HdfsStore(const std::vector<std::string>& paths, std::shared_ptr<HdfsVolumes> volumes,
            Duration scan_interval)
      : volumes_(std::move(volumes)), inventory_(volumes_, scan_interval) {
    for (const std::string& path : paths) {
      calls_.push_back(std::make_unique<RootCalls>(path));
      reads_.emplace_back(path);
    }
  }

  absl::StatusOr<Reader> Open(const std::string& block_id) override {
    ECPIPE_ASSIGN_OR_RETURN(const HdfsBlock block, ParseHdfsBlock(block_id));
    const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
    // The mover copies a replica to another volume before it removes it here: what is found nowhere
    // may have gone to a volume that was looked at before.
    std::string reasons;
    for (int look = 0; look < 2; ++look) {
      reasons.clear();
      absl::Status failure;
      for (absl::StatusOr<Reader>& reader : OpenOnEach(block_id, block, deadline)) {
        if (reader.ok() || absl::IsDataLoss(reader.status())) return std::move(reader);
        reasons += (reasons.empty() ? "" : "; ") + std::string(reader.status().message());
        if (!absl::IsNotFound(reader.status())) failure = reader.status();
      }
      // That it could not be read says more than that it is not there.
      if (!failure.ok()) return failure;
    }
    for (const std::string& failed : volumes_->failed()) reasons += "; failed volume " + failed;
    return absl::NotFoundError("block " + block_id +
                               " is on none of the DataNode's volumes: " + reasons);
  }

  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t) override {
    return absl::FailedPreconditionError("block " + block_id +
                                         " cannot be stored here: HDFS writes its blocks itself");
  }

  absl::StatusOr<StoreInventory> TakeInventory() override {
    StoreInventory inventory = inventory_.latest();
    inventory.failed_roots = volumes_->failed();
    for (const HungReads& reads : reads_) {
      const absl::Status hung = reads.Check();
      if (!hung.ok()) inventory.failed_roots.emplace_back(hung.message());
    }
    return inventory;
  }
  absl::Status TroubleOf(const std::string& volume) override {
    for (const HungReads& reads : reads_) {
      if (reads.path() == volume) return reads.Check();
    }
    return absl::OkStatus();
  }
  TakenListing Listing() override { return inventory_.listing(); }
  std::string storage_id() const override { return volumes_->datanode_uuid(); }

 private:
  // Of each volume that is used.
  std::vector<absl::StatusOr<Reader>> OpenOnEach(const std::string& block_id,
                                                 const HdfsBlock& block, TimePoint deadline) {
    const HdfsVolumes::Opened volumes = volumes_->opened();
    std::map<size_t, RootCalls::Pending<Reader>> pending;
    std::vector<absl::StatusOr<Reader>> readers;
    for (size_t i = 0; i < volumes.size(); ++i) {
      if (volumes[i] == nullptr) continue;
      if (absl::Status hung = reads_[i].Check(); !hung.ok()) {
        readers.push_back(hung);  // what is read there would hang as well
        continue;
      }
      pending[i] = calls_[i]->Begin<Reader>(
          [volume = volumes[i], block_id, block] { return OpenOn(*volume, block_id, block); });
    }
    for (auto& [i, each] : pending) {
      absl::StatusOr<Reader> reader = each.Await(deadline);
      if (reader.ok()) reader = reads_[i].Watch(*std::move(reader));
      readers.push_back(std::move(reader));
    }
    return readers;
  }

  const std::shared_ptr<HdfsVolumes> volumes_;     // shared with the thread that scans
  std::vector<std::unique_ptr<RootCalls>> calls_;  // of each volume, in its place
  std::vector<HungReads> reads_;                   // the same
  HdfsInventory inventory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenHdfsStore(const std::vector<std::string>& volumes,
                                                          Duration scan_interval) {
  ECPIPE_ASSIGN_OR_RETURN(std::shared_ptr<HdfsVolumes> opened, HdfsVolumes::Open(volumes));
  return std::make_unique<HdfsStore>(volumes, std::move(opened), scan_interval);
}

}  // namespace ecpipe

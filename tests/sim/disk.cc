// SPDX-License-Identifier: Apache-2.0
#include "sim/disk.h"

#include <algorithm>

#include "base/fault_points.h"
#include "base/status.h"

namespace ecpipe::sim {
namespace {

constexpr Duration kSlowRead = std::chrono::milliseconds(20);
constexpr Duration kHangingRead = std::chrono::seconds(25);

absl::Status Crashed() { return absl::UnavailableError("this process has crashed"); }

}  // namespace

class DiskStore::Reader : public BlockReader {
 public:
  Reader(const DiskStore& store, std::string block_id, std::shared_ptr<Ranges> wanted)
      : disk_(store.disk_),
        scheduler_(store.scheduler_),
        checks_(store.checks_),
        block_id_(std::move(block_id)),
        bytes_(store.disk_->blocks.at(block_id_)),
        wanted_(std::move(wanted)) {}

  uint64_t bytes() const override {
    const bool is_short = disk_->FaultOf(block_id_) == Disk::Fault::kShort;
    return is_short ? bytes_->size() - 1 : bytes_->size();
  }

  bool has_checksums() const override { return true; }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Disk::Fault fault = disk_->FaultOf(block_id_);
    if (fault == Disk::Fault::kSlow) scheduler_->Sleep(kSlowRead);
    if (fault == Disk::Fault::kHangs) scheduler_->Sleep(kHangingRead);
    if (fault == Disk::Fault::kUnreadable) return absl::InternalError("bad sector");
    if (fault == Disk::Fault::kDamaged) return absl::DataLossError("checksum mismatch");
    if (offset + out.size() > bytes()) return absl::DataLossError("the file has become shorter");
    TakeFromWanted(offset, out.size());
    std::copy_n(bytes_->begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Disk::Fault fault = disk_->FaultOf(block_id_);
    if (fault == Disk::Fault::kSlow || fault == Disk::Fault::kHangs) return false;
    ECPIPE_RETURN_IF_ERROR(ReadAt(offset, out));
    return true;
  }

 private:
  // Each byte that the part asks for is read once, and no other.
  void TakeFromWanted(uint64_t offset, uint64_t bytes) {
    if (wanted_ == nullptr) return;
    auto range = wanted_->upper_bound(offset);
    if (range != wanted_->begin()) --range;
    if (range == wanted_->end() || range->first > offset || range->second < offset + bytes) {
      return checks_->Violation("bytes " + std::to_string(offset) + "+" + std::to_string(bytes) +
                                " of block " + block_id_ +
                                " were read, which were not asked for or had been read");
    }
    const auto [from, to] = *range;
    wanted_->erase(range);
    if (from < offset) (*wanted_)[from] = offset;
    if (offset + bytes < to) (*wanted_)[offset + bytes] = to;
  }

  const Disk* const disk_;
  Scheduler* const scheduler_;
  Checks* const checks_;
  const std::string block_id_;
  const std::shared_ptr<const std::vector<uint8_t>> bytes_;  // shared: as an open file is
  const std::shared_ptr<Ranges> wanted_;
};

class DiskStore::Writer : public BlockWriter {
 public:
  Writer(const DiskStore& store, std::string block_id, uint64_t bytes)
      : disk_(store.disk_),
        process_(store.process_),
        checks_(store.checks_),
        block_id_(std::move(block_id)),
        bytes_(bytes) {
    ++disk_->temporary_files;
  }
  ~Writer() override {
    // What a crash leaves is found by the next start.
    if (process_->alive && !committed_) --disk_->temporary_files;
  }

  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    if (!process_->alive) return Crashed();
    ECPIPE_RETURN_IF_ERROR(FaultPoint("sim.write_block"));
    checks_->Expect(checks_->Right(block_id_, offset, bytes),
                    "wrong bytes at " + std::to_string(offset) + " of block " + block_id_ +
                        " were written to a store");
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset));
    return absl::OkStatus();
  }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    const auto from = bytes_.begin() + static_cast<ptrdiff_t>(offset);
    std::copy(from, from + static_cast<ptrdiff_t>(out.size()), out.begin());
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    if (!process_->alive) return Crashed();
    ECPIPE_RETURN_IF_ERROR(FaultPoint("sim.before_commit"));
    checks_->Expect(checks_->Right(block_id_, 0, bytes_),
                    "wrong bytes were stored as " + block_id_);
    disk_->blocks[block_id_] = std::make_shared<const std::vector<uint8_t>>(bytes_);
    disk_->faults.erase(block_id_);
    --disk_->temporary_files;
    committed_ = true;
    return FaultPoint("sim.after_commit");
  }

 private:
  Disk* const disk_;
  const std::shared_ptr<Process> process_;
  Checks* const checks_;
  const std::string block_id_;
  std::vector<uint8_t> bytes_;
  bool committed_ = false;
};

DiskStore::DiskStore(Disk* disk, std::shared_ptr<Process> process, Scheduler* scheduler,
                     Checks* checks)
    : disk_(disk), process_(std::move(process)), scheduler_(scheduler), checks_(checks) {
  disk_->temporary_files = 0;
}

void DiskStore::SetPart(const RepairPart* part) {
  if (part == nullptr) {
    starting_.erase(scheduler_->current_fibre());
  } else {
    starting_[scheduler_->current_fibre()].part = part;
  }
}

DiskStore::Ranges DiskStore::Wanted(const RepairPart& part, const std::string& block_id) {
  Ranges wanted;
  for (const HopSpec& hop : part.hops) {
    if (!hop.block || hop.block->block_id != block_id) continue;
    for (uint32_t ordinal = 0; ordinal < hop.slices.count(); ++ordinal) {
      const uint32_t slice = hop.slices.SliceIndex(ordinal);
      for (const uint32_t sub_block : hop.block->sub_blocks) {
        part.layout.ForEachPiece(sub_block, part.grid.SliceOffset(slice),
                                 part.grid.SliceBytes(slice),
                                 [&](uint64_t offset, uint64_t, uint64_t bytes) {
                                   wanted[offset] = offset + bytes;
                                   return true;
                                 });
      }
    }
  }
  return wanted;
}

absl::StatusOr<std::unique_ptr<BlockReader>> DiskStore::Open(const std::string& block_id) {
  if (!process_->alive) return Crashed();
  if (!disk_->blocks.contains(block_id)) return absl::NotFoundError("no block " + block_id);
  std::shared_ptr<Ranges> wanted;
  if (const auto found = starting_.find(scheduler_->current_fibre()); found != starting_.end()) {
    std::shared_ptr<Ranges>& kept = found->second.wanted[block_id];
    if (kept == nullptr) kept = std::make_shared<Ranges>(Wanted(*found->second.part, block_id));
    wanted = kept;
  }
  return std::make_unique<Reader>(*this, block_id, std::move(wanted));
}

absl::StatusOr<std::unique_ptr<BlockWriter>> DiskStore::Create(const std::string& block_id,
                                                               uint64_t bytes) {
  if (!process_->alive) return Crashed();
  return std::make_unique<Writer>(*this, block_id, bytes);
}

absl::StatusOr<StoreInventory> DiskStore::TakeInventory() {
  StoreInventory inventory;
  for (const auto& [block_id, bytes] : disk_->blocks) {
    ++inventory.block_count;
    inventory.block_bytes += bytes->size();
  }
  return inventory;
}

}  // namespace ecpipe::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "helper/store/block_store.h"
#include "model/plan/repair_plan.h"
#include "sim/checks.h"
#include "sim/network.h"

namespace ecpipe::sim {

// A node's disk: what a crash leaves of a helper.
struct Disk {
  enum class Fault {
    kNone,
    kUnreadable,  // reads fail
    kDamaged,     // a bit has flipped; the store's checksums say so
    kShort,       // the file has lost its end
    kSlow,        // reads take a while
    kHangs,       // and longer than anybody waits
  };

  std::map<std::string, std::shared_ptr<const std::vector<uint8_t>>> blocks;  // readers share them
  std::map<std::string, Fault> faults;                                        // by block id
  int temporary_files = 0;

  Fault FaultOf(const std::string& block_id) const {
    const auto found = faults.find(block_id);
    return found == faults.end() ? Fault::kNone : found->second;
  }
};

// The store of one life of a helper. Checks what is read and what is stored.
class DiskStore : public BlockStore {
 public:
  // Opening it removes what an earlier life has left half-written.
  DiskStore(Disk* disk, std::shared_ptr<Process> process, Scheduler* scheduler, Checks* checks);

  // What this fibre opens is opened for this part; null: for none.
  void SetPart(const RepairPart* part);

  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override;
  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t bytes) override;
  absl::StatusOr<StoreInventory> TakeInventory() override;

 private:
  // Bytes of a block that a part may still read, in the order of the file: from, to.
  using Ranges = std::map<uint64_t, uint64_t>;
  class Reader;
  class Writer;

  static Ranges Wanted(const RepairPart& part, const std::string& block_id);

  Disk* const disk_;
  const std::shared_ptr<Process> process_;  // shared with its fibres
  Scheduler* const scheduler_;
  Checks* const checks_;
  // A part that is being started. All its readers of a block share what may be read of it.
  struct Starting {
    const RepairPart* part = nullptr;
    std::map<std::string, std::shared_ptr<Ranges>> wanted;  // by block
  };
  std::map<uint64_t, Starting> starting_;  // by fibre
};

}  // namespace ecpipe::sim

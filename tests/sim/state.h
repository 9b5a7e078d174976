// SPDX-License-Identifier: Apache-2.0
// What the coordinator keeps on its disk, in memory: it outlives the coordinator's processes. Each
// of these gets a catalog, a journal and marks of its own over it, which fail once it has crashed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/corrupt_blocks.h"
#include "fakes/memory_store.h"
#include "sim/scheduler.h"

namespace ecpipe::sim {

struct CoordinatorState : KeptStripes, KeptRecords {
  struct Mark {
    CorruptBlock block;
    TimePoint kept{};  // max(): the coordinator has forgotten it, but not the disk
  };
  std::map<std::pair<std::string, std::string>, Mark> marks;  // by block id and node
};

// Says why a coordinator's process cannot write to its disk: it has crashed, or crashes now.
absl::Status WritableBy(const Process& process);

class StateMarks : public CorruptBlockStore {
 public:
  StateMarks(CoordinatorState* state, std::shared_ptr<Process> process)
      : state_(state), process_(std::move(process)) {}

  absl::Status Keep(const CorruptBlock& block) override;
  absl::Status Forget(const std::string& block_id, const std::string& node) override;
  absl::StatusOr<std::vector<CorruptBlock>> Load() override;

 private:
  CoordinatorState* const state_;
  const std::shared_ptr<Process> process_;  // shared with its fibres
};

}  // namespace ecpipe::sim

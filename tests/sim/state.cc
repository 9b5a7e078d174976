// SPDX-License-Identifier: Apache-2.0
#include "sim/state.h"

#include <algorithm>

#include "base/fault_points.h"
#include "base/status.h"

namespace ecpipe::sim {

absl::Status WritableBy(const Process& process) {
  if (!process.alive) return absl::UnavailableError("this process has crashed");
  return FaultPoint("sim.write_state");
}

absl::Status StateMarks::Keep(const CorruptBlock& block) {
  ECPIPE_RETURN_IF_ERROR(WritableBy(*process_));
  state_->marks[{block.block_id, block.node}] = {block, Clock::System().Now()};
  return absl::OkStatus();
}

absl::Status StateMarks::Forget(const std::string& block_id, const std::string& node) {
  const absl::Status writable = WritableBy(*process_);
  const auto mark = state_->marks.find({block_id, node});
  if (!writable.ok() && process_->alive && mark != state_->marks.end()) {
    mark->second.kept = TimePoint::max();
  }
  ECPIPE_RETURN_IF_ERROR(writable);
  state_->marks.erase({block_id, node});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CorruptBlock>> StateMarks::Load() {
  std::vector<CorruptBlock> all;
  for (const auto& [copy, mark] : state_->marks) all.push_back(mark.block);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.found_unix_ms < b.found_unix_ms; });
  return all;
}

}  // namespace ecpipe::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/history.h"
#include "sim/scheduler.h"

namespace ecpipe::sim {

// What is true of the simulated cluster, whatever its daemons believe, and what they got wrong.
class Checks {
 public:
  explicit Checks(Scheduler* scheduler) : scheduler_(scheduler) {}

  // The bytes of a block, for ever.
  void SetTruth(const std::string& block_id, std::vector<uint8_t> bytes) {
    truth_[block_id] = std::move(bytes);
  }
  const std::vector<uint8_t>& Truth(const std::string& block_id) const {
    return truth_.at(block_id);
  }
  // Whether these are the block's bytes from `offset` on.
  bool Right(const std::string& block_id, uint64_t offset, std::span<const uint8_t> bytes) const;

  // An invariant does not hold.
  void Violation(const std::string& what) {
    scheduler_->Trace("VIOLATION " + what);
    violations_.push_back(what);
  }
  void Expect(bool holds, const std::string& what) {
    if (!holds) Violation(what);
  }
  const std::vector<std::string>& violations() const { return violations_; }

  // A part is about to read the node's copy of a block; `on_read` says whether it may.
  void WillRead(const std::string& block_id, const std::string& node) {
    if (on_read) on_read(block_id, node);
  }
  std::function<void(const std::string& block_id, const std::string& node)> on_read;

  // What has happened, for JudgeHistory.
  void Note(HistoryEvent event) { history_.push_back(std::move(event)); }
  const std::vector<HistoryEvent>& history() const { return history_; }

  // A helper runs a part of so many hops.
  void SawHops(size_t hops) { most_hops_ = std::max(most_hops_, hops); }
  size_t most_hops() const { return most_hops_; }

 private:
  Scheduler* const scheduler_;
  std::map<std::string, std::vector<uint8_t>> truth_;
  std::vector<std::string> violations_;
  std::vector<HistoryEvent> history_;
  size_t most_hops_ = 0;
};

}  // namespace ecpipe::sim

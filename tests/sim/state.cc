// SPDX-License-Identifier: Apache-2.0
#include "sim/state.h"

#include <algorithm>

#include "base/fault_points.h"
#include "base/status.h"

namespace ecpipe::sim {
namespace {

absl::Status Writable(const Process& process) {
  if (!process.alive) return absl::UnavailableError("this process has crashed");
  return FaultPoint("sim.write_state");
}

}  // namespace

absl::StatusOr<PutCounts> StateCatalog::Put(const std::vector<Stripe>& stripes) {
  ECPIPE_RETURN_IF_ERROR(Writable(*process_));
  for (const Stripe& stripe : stripes) state_->stripes[stripe.stripe_id] = stripe;
  return PutCounts{};
}

absl::StatusOr<BlockLocation> StateCatalog::FindBlock(const std::string& block_id) {
  for (const auto& [stripe_id, stripe] : state_->stripes) {
    for (size_t i = 0; i < stripe.blocks.size(); ++i) {
      if (stripe.blocks[i].block_id == block_id) return BlockLocation{stripe, static_cast<int>(i)};
    }
  }
  return absl::NotFoundError("no stripe has block " + block_id);
}

absl::StatusOr<Stripe> StateCatalog::FindStripe(const std::string& stripe_id) {
  const auto found = state_->stripes.find(stripe_id);
  if (found == state_->stripes.end()) return absl::NotFoundError("no stripe " + stripe_id);
  return found->second;
}

absl::StatusOr<StripePage> StateCatalog::List(const std::string& after, int limit) {
  StripePage page;
  for (auto it = state_->stripes.upper_bound(after); it != state_->stripes.end(); ++it) {
    if (static_cast<int>(page.stripes.size()) == limit) break;
    page.stripes.push_back(it->second);
  }
  return page;
}

absl::StatusOr<NodeBlockPage> StateCatalog::ListNode(const std::string& node,
                                                     const std::string& page, int limit) {
  ECPIPE_ASSIGN_OR_RETURN(const StripePage stripes, List(page, limit));
  NodeBlockPage listed;
  for (const Stripe& stripe : stripes.stripes) {
    listed.next = stripe.stripe_id;
    for (const BlockPlace& place : stripe.blocks) {
      if (place.node == node) listed.blocks.push_back({place.block_id, stripe});
    }
  }
  return listed;
}

absl::Status StateCatalog::MoveBlock(const std::string& block_id, const std::string& node,
                                     const Stripe& was) {
  ECPIPE_RETURN_IF_ERROR(Writable(*process_));
  if (state_->on_move) state_->on_move(block_id, node);
  for (auto& [stripe_id, stripe] : state_->stripes) {
    for (BlockPlace& place : stripe.blocks) {
      if (place.block_id != block_id) continue;
      ECPIPE_RETURN_IF_ERROR(CheckMayMove(block_id, node, was, stripe));
      place.node = node;
      return absl::OkStatus();
    }
  }
  return absl::NotFoundError("no stripe has block " + block_id);
}

absl::Status StateJournal::Record(const RepairRecord& record) {
  ECPIPE_RETURN_IF_ERROR(Writable(*process_));
  if (state_->on_repair && !state_->repairs.contains(record.repair_id)) state_->on_repair(record);
  state_->repairs[record.repair_id] = record;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RepairRecord>> StateJournal::ClaimInterrupted(int64_t now_unix_ms) {
  std::vector<RepairRecord> taken;
  for (auto& [repair_id, record] : state_->repairs) {
    if (record.state != RepairState::kRunning) continue;
    record.state = RepairState::kInterrupted;
    record.ended_unix_ms = now_unix_ms;
    taken.push_back(record);
  }
  return taken;
}

absl::StatusOr<RepairRecord> StateJournal::Find(RepairId repair_id) {
  const auto found = state_->repairs.find(repair_id);
  if (found == state_->repairs.end()) return absl::NotFoundError("no such repair");
  return found->second;
}

absl::StatusOr<std::vector<RepairRecord>> StateJournal::Recent(int limit) {
  std::vector<RepairRecord> recent;
  for (const auto& [repair_id, record] : state_->repairs) recent.push_back(record);
  std::stable_sort(recent.begin(), recent.end(), [](const auto& a, const auto& b) {
    const bool a_runs = a.state == RepairState::kRunning;
    const bool b_runs = b.state == RepairState::kRunning;
    return a_runs != b_runs ? a_runs : a.started_unix_ms > b.started_unix_ms;
  });
  recent.resize(std::min(recent.size(), static_cast<size_t>(limit)));
  return recent;
}

absl::StatusOr<std::vector<RepairRecord>> StateJournal::RecentlyEnded(int limit) {
  std::vector<RepairRecord> ended =
      Recent(static_cast<int>(state_->repairs.size())).value_or(std::vector<RepairRecord>{});
  std::erase_if(ended, [](const auto& record) { return record.state == RepairState::kRunning; });
  ended.resize(std::min(ended.size(), static_cast<size_t>(limit)));
  return ended;
}

absl::Status StateJournal::RecordRecovery(const RecoveryRecord& record) {
  ECPIPE_RETURN_IF_ERROR(Writable(*process_));
  state_->recoveries[record.recovery_id] = record;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RecoveryRecord>> StateJournal::Recoveries(int limit) {
  std::vector<RecoveryRecord> newest;
  for (auto it = state_->recoveries.rbegin(); it != state_->recoveries.rend(); ++it) {
    if (static_cast<int>(newest.size()) == limit) break;
    newest.push_back(it->second);
  }
  return newest;
}

absl::Status StateMarks::Keep(const CorruptBlock& block) {
  ECPIPE_RETURN_IF_ERROR(Writable(*process_));
  state_->marks[{block.block_id, block.node}] = {block, Clock::System().Now()};
  return absl::OkStatus();
}

absl::Status StateMarks::Forget(const std::string& block_id, const std::string& node) {
  const absl::Status writable = Writable(*process_);
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

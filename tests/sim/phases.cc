// SPDX-License-Identifier: Apache-2.0
// World: after the chaos. All that is asked ends; what is healthy works; nothing is left behind.
#include "base/status.h"
#include "sim/world.h"

namespace ecpipe::sim {
namespace {

constexpr Duration kAllOperationsEnd = std::chrono::seconds(300);
constexpr Duration kRecoveryEnds = std::chrono::seconds(600);
// Stall timeouts, abandoned repairs, late reports and blocks kept for another attempt: the longest
// of them is 30 s.
constexpr Duration kSettles = std::chrono::seconds(90);
// A part that was planned before arrives within this.
constexpr Duration kUnderWay = std::chrono::seconds(2);
// Far above what any seed takes. Beyond it time does not pass any more.
constexpr uint64_t kMostSteps = 20'000'000;

}  // namespace

bool World::RunUntil(const std::function<bool()>& done, Duration patience) {
  const TimePoint deadline = scheduler_.Now() + patience;
  while (!done()) {
    if (scheduler_.Now() >= deadline) return false;
    if (scheduler_.steps() > kMostSteps) {
      checks_.Violation("virtual time stands still");
      return false;
    }
    if (!scheduler_.Step()) return false;
  }
  return true;
}

// One after the other: the cluster serves meanwhile.
void World::Upgrade() {
  for (auto& [node, helper] : helpers_) {
    if (helper != nullptr) helper->SetMaxSessions(HelperHost::Options{}.max_sessions);
  }
  while (!older_.empty()) {
    const std::string node = older_.begin()->first;
    older_.erase(node);
    CrashHelper(node);
    RunUntil([] { return false; }, std::chrono::milliseconds(200));
    StartHelper(node);
  }
}

void World::AwaitOperations() {
  checks_.Expect(RunUntil([this] { return operations_running_ == 0; }, kAllOperationsEnd),
                 std::to_string(operations_running_) + " operations did not end");
}

void World::Heal() {
  scheduler_.Trace("everything is mended");
  chaos_ = false;
  limited_ = false;
  network_.Heal();
  StartCoordinator();
  coordinator_->SetRunningRepairs(CoordinatorHost::Limits{}.running_repairs);
  Upgrade();
  for (const std::string& node : wiped_) {
    // With an empty disk: its blocks are as lost as before.
    if (scheduler_.random().Chance(0.5)) returned_.insert(node);
  }
  for (auto& [node, helper] : helpers_) {
    disks_[node].faults.clear();
    StartHelper(node);
  }
  ResumeRecoveries();
  RunUntil([] { return false; }, kSettles);
  CheckMarks();
  // Files are whole again without a repair, as if somebody had put them back and said so.
  CorruptBlocks& marks = coordinator_->repairs().corrupt();
  for (const CorruptBlock& mark : marks.All()) marks.Forget(mark.block_id);
}

// What was called corrupt is checked, and that decides. Who is gone for good cannot be asked.
void World::CheckMarks() {
  for (const CorruptBlock& mark : coordinator_->repairs().corrupt().All()) {
    const bool answers =
        helpers_[mark.node] != nullptr && disks_[mark.node].blocks.contains(mark.block_id);
    checks_.Expect(!mark.suspect || !answers,
                   "block " + mark.block_id + " on " + mark.node + " is still a suspect");
  }
}

// A mark outlives the coordinator that made it.
void World::CheckMarksTakenUp(CoordinatorHost* coordinator) {
  const CorruptBlocks& marks = coordinator->repairs().corrupt();
  for (const auto& [copy, mark] : state_.marks) {
    checks_.Expect(marks.Find(copy.first, copy.second).has_value(),
                   "the mark of block " + copy.first + " was lost with a coordinator");
  }
}

void World::OnRead(const std::string& block_id, const std::string& node) {
  const auto found = state_.marks.find({block_id, node});
  if (found == state_.marks.end()) return;
  const auto& [mark, kept] = found->second;
  const bool old = kept < scheduler_.Now() - kUnderWay;
  checks_.Expect(
      mark.suspect || !old,
      node + " is asked to read block " + block_id + ", which is marked as corrupt there");
}

bool World::RecoveriesEnded() const {
  for (const auto& [id, record] : state_.recoveries) {
    if (record.state == RecoveryState::kRunning) return false;
  }
  return true;
}

void World::CheckRecoveries() {
  const auto ended = [this] { return RecoveriesEnded(); };
  checks_.Expect(RunUntil(ended, kRecoveryEnds), "a recovery did not end");
  for (const std::string& node : wiped_) {
    // One that was begun in the chaos may have given blocks up. With nothing wrong none is.
    ++operations_running_;
    scheduler_.Spawn(outside_, [this, node] {
      BeginRecovery(node, -1);
      --operations_running_;
    });
    AwaitOperations();
    checks_.Expect(RunUntil(ended, kRecoveryEnds), "the last recovery did not end");
    const RecoveryRecord& last = state_.recoveries.rbegin()->second;
    if (last.state == RecoveryState::kDone) {
      checks_.Note({.kind = HistoryEvent::Kind::kRecovered,
                    .node = last.request.node,
                    .recovery = last.recovery_id});
    }
    checks_.Expect(
        last.state == RecoveryState::kDone,
        "a recovery with nothing wrong ended " + std::string(RecoveryStateName(last.state)));
  }
}

void World::CheckHealthy() {
  for (int i = 0; i < 3; ++i) {
    auto host = std::make_shared<RequestorHost>("last" + std::to_string(i), &network_, &checks_);
    ++operations_running_;
    const auto kind =
        i == 2 ? Scenario::Operation::Kind::kRepairToNodes : Scenario::Operation::Kind::kRead;
    scheduler_.Spawn(host->process(), [this, host, kind] {
      Operate(host.get(), kind, /*must_succeed=*/true);
      --operations_running_;
    });
    AwaitOperations();
  }
  RunUntil([] { return false; }, kSettles);
}

void World::CheckNothingLeft() {
  for (const auto& [node, helper] : helpers_) {
    if (helper == nullptr) continue;
    const SessionCounts counts = helper->counts();
    checks_.Expect(counts.active_sessions == 0, node + " still has sessions");
    checks_.Expect(counts.buffer_bytes == 0, node + " still has slice buffers");
    checks_.Expect(counts.kept_parts == 0, node + " still keeps blocks for another attempt");
    checks_.Expect(helper->data_port()->size() == 0, node + " still waits for connections");
    checks_.Expect(helper->unsent_reports() == 0, node + " still has reports");
    checks_.Expect(disks_[node].temporary_files == 0, node + " still has temporary files");
  }
  checks_.Expect(Connection::count() == 0,
                 std::to_string(Connection::count()) + " connections are left");
  const RepairCounts counts = coordinator_->repairs().counts();
  checks_.Expect(counts.started <= counts.done + counts.failed + counts.cancelled,
                 "the coordinator still has repairs");
  for (const auto& [repair_id, record] : state_.records) {
    checks_.Expect(record.state != RepairState::kRunning,
                   "the journal still has repair " + RepairIdText(repair_id) + " as running");
  }
}

RecoveryId World::RecoveryOf(const std::string& block_id, const std::string& node) const {
  for (const auto& [repair_id, record] : state_.records) {
    if (record.state != RepairState::kRunning) continue;
    for (size_t i = 0; i < record.hosts.size(); ++i) {
      if (record.block_ids[i] == block_id && record.hosts[i] == node) return record.recovery_id;
    }
  }
  return 0;
}

void World::OnMove(const std::string& block_id, const std::string& node) {
  scheduler_.Trace("block " + block_id + " is now on " + node);
  checks_.Note({.kind = HistoryEvent::Kind::kMoved,
                .stripe = StripeOf(block_id),
                .block = block_id,
                .node = node,
                .recovery = RecoveryOf(block_id, node)});
  if (wiped_.contains(node)) return;  // the report came before the loss
  const auto found = disks_[node].blocks.find(block_id);
  const bool there = found != disks_[node].blocks.end();
  checks_.Expect(there, "the catalog has block " + block_id + " on " + node + ", which has it not");
  checks_.Expect(!there || checks_.Right(block_id, 0, *found->second),
                 "the catalog has block " + block_id + " on " + node + ", where it is wrong");
  lost_.erase(block_id);
}

void World::CheckPlaces() {
  for (const auto& [stripe_id, stripe] : state_.stripes) {
    std::set<std::string> nodes;
    for (const BlockPlace& place : stripe.blocks) {
      checks_.Expect(nodes.insert(place.node).second,
                     "two blocks of stripe " + stripe_id + " are on " + place.node);
      checks_.Expect(!wiped_.contains(place.node),
                     "block " + place.block_id + " is still on the lost " + place.node);
      if (lost_.contains(place.block_id)) continue;
      checks_.Expect(disks_[place.node].blocks.contains(place.block_id),
                     "block " + place.block_id + " is not on " + place.node);
    }
  }
}

void World::TearDown() {
  CrashCoordinator();
  for (const auto& [node, helper] : helpers_) CrashHelper(node);
  const auto gone = [this] { return burials_ == 0 && scheduler_.fibres() == 0; };
  checks_.Expect(RunUntil(gone, kSettles), std::to_string(scheduler_.fibres()) + " threads and " +
                                               std::to_string(burials_) + " processes did not end");
  outcome_.virtual_seconds = Seconds(scheduler_.Now().time_since_epoch()) - 3600.0 * 1000;
}

}  // namespace ecpipe::sim

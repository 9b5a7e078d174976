// SPDX-License-Identifier: Apache-2.0
// World: nodes that are lost with their disks, and what the operator does about them.
#include "base/status.h"
#include "sim/world.h"

namespace ecpipe::sim {
namespace {

constexpr Duration kCallTimeout = std::chrono::seconds(5);
constexpr Duration kAskAgain = std::chrono::seconds(1);

const char* NameOf(RecoveryChange change) {
  switch (change) {
    case RecoveryChange::kPause:
      return "pause";
    case RecoveryChange::kResume:
      return "resume";
    case RecoveryChange::kCancel:
      break;
  }
  return "cancel";
}

absl::Status Ask(RecoveryManager* recoveries, RecoveryId id, RecoveryChange change) {
  switch (change) {
    case RecoveryChange::kPause:
      return recoveries->Pause(id);
    case RecoveryChange::kResume:
      return recoveries->Resume(id);
    case RecoveryChange::kCancel:
      break;
  }
  return recoveries->Cancel(id);
}

Host Operator() { return Host("operator", std::make_shared<Process>(Process{.name = "operator"})); }

}  // namespace

void World::WipeAndRecover(const Scenario::Operation& operation) {
  // Blocks need a place: a stripe's nodes, the lost one, and one more.
  const auto blocks = static_cast<int>(RandomStripe().blocks.size());
  if (!wiped_.empty() || scenario_.nodes < blocks + 2) return;
  const std::string node = RandomNode();
  scheduler_.Trace(node + " is lost with its disk");
  wiped_.insert(node);
  CrashHelper(node);
  disks_[node] = {};
  ++outcome_.recoveries;
  ++operations_running_;
  scheduler_.Spawn(outside_, [this, node, operation] {
    BeginRecovery(node, operation.delay_seconds);
    for (const Scenario::Operation::Step& step : operation.steps) {
      scheduler_.Sleep(step.after);
      if (state_.recoveries.empty()) break;
      ChangeRecovery(state_.recoveries.rbegin()->first, step.change);
    }
    --operations_running_;
  });
}

void World::BeginRecovery(const std::string& node, double delay_seconds) {
  const Host host = Operator();
  const TimePoint deadline = scheduler_.Now() + kLongestOperation;
  while (scheduler_.Now() < deadline) {
    const auto begun =
        network_.Call<bool>(host, kCoordinatorNode, kCallTimeout,
                            [node, delay_seconds, slice_bytes = scenario_.slice_bytes](
                                Host* coordinator) -> absl::StatusOr<bool> {
                              RecoveryRequest request;
                              request.node = node;
                              request.delay_seconds = delay_seconds;
                              request.slice_bytes = slice_bytes;
                              ECPIPE_RETURN_IF_ERROR(static_cast<CoordinatorHost*>(coordinator)
                                                         ->recoveries()
                                                         .Begin(request, IfLive::kRebuildMissing)
                                                         .status());
                              return true;
                            });
    scheduler_.Trace("recovery of " + node + ": " + StatusText(begun.status()));
    if (begun.ok() || absl::IsAlreadyExists(begun.status())) return;
    scheduler_.Sleep(kAskAgain);
  }
  checks_.Violation("no recovery of " + node + " could be begun");
}

void World::ChangeRecovery(RecoveryId id, RecoveryChange change) {
  const Host host = Operator();
  const TimePoint deadline = scheduler_.Now() + kLongestOperation;
  const std::string what = std::string(NameOf(change)) + " recovery " + std::to_string(id);
  at_rest_.erase(id);
  while (scheduler_.Now() < deadline) {
    const auto changed = network_.Call<bool>(
        host, kCoordinatorNode, kCallTimeout,
        [id, change](Host* coordinator) -> absl::StatusOr<bool> {
          ECPIPE_RETURN_IF_ERROR(
              Ask(&static_cast<CoordinatorHost*>(coordinator)->recoveries(), id, change));
          return true;
        });
    scheduler_.Trace(what + ": " + StatusText(changed.status()));
    if (changed.ok() && change != RecoveryChange::kResume) at_rest_[id] = NameOf(change);
    // It has ended.
    if (changed.ok() || absl::IsFailedPrecondition(changed.status())) return;
    scheduler_.Sleep(kAskAgain);
  }
  checks_.Violation("the operator could not " + what);
}

void World::OnRepair(const RepairRecord& record) {
  const auto rests = at_rest_.find(record.recovery_id);
  checks_.Expect(rests == at_rest_.end(),
                 "a repair of " + record.block_ids[0] + " began after the operator's " +
                     (rests == at_rest_.end() ? "" : rests->second) + " of its recovery");
}

void World::ResumeRecoveries() {
  for (const auto& [id, record] : state_.recoveries) {
    if (record.state != RecoveryState::kPaused) continue;
    ++operations_running_;
    scheduler_.Spawn(outside_, [this, paused = id] {
      ChangeRecovery(paused, RecoveryChange::kResume);
      --operations_running_;
    });
  }
  AwaitOperations();
}

}  // namespace ecpipe::sim

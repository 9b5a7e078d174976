// SPDX-License-Identifier: Apache-2.0
// World: what goes wrong.
#include "base/status.h"
#include "sim/world.h"

namespace ecpipe::sim {

void World::Schedule() {
  chaos_ = true;
  for (const Scenario::Operation& operation : scenario_.operations) {
    scheduler_.After(operation.at, [this, operation] { Begin(operation); });
  }
  for (const Scenario::Action& action : scenario_.actions) {
    scheduler_.After(action.at, [this, action] { Do(action); });
  }
  RunUntil([] { return false; }, scenario_.chaos);
}

std::string World::RandomNode() {
  return "n" + std::to_string(scheduler_.random().Below(static_cast<uint64_t>(scenario_.nodes)));
}

const Stripe& World::RandomStripe() {
  auto stripe = state_.stripes.begin();
  std::advance(stripe, static_cast<ptrdiff_t>(scheduler_.random().Below(state_.stripes.size())));
  return stripe->second;
}

void World::Do(const Scenario::Action& action) {
  using Kind = Scenario::Action::Kind;
  const std::string node = RandomNode();
  const std::string other = RandomNode();
  switch (action.kind) {
    case Kind::kCrashHelper:
      CrashHelper(node);
      return UndoAfter(action.lasts, [this, node] { StartHelper(node); });
    case Kind::kCrashCoordinator:
      CrashCoordinator();
      return scheduler_.After(action.lasts, [this] { StartCoordinator(); });
    case Kind::kIsolate:
      scheduler_.Trace(node + " is isolated");
      network_.Isolate(node);
      return UndoAfter(action.lasts, [this, node] { network_.Rejoin(node); });
    case Kind::kCutLink:
      scheduler_.Trace(node + " cannot reach " + other);
      network_.Cut(node, other);
      return UndoAfter(action.lasts, [this, node, other] { network_.Mend(node, other); });
    case Kind::kSlowNode:
      scheduler_.Trace(node + " is slow");
      return network_.Slow(node, static_cast<double>(scheduler_.random().Between(2, 30)));
    case Kind::kDiskFault: {
      const Stripe& stripe = RandomStripe();
      const BlockPlace& place = scheduler_.random().Pick(stripe.blocks);
      const auto fault = static_cast<Disk::Fault>(scheduler_.random().Between(1, 5));
      scheduler_.Trace("disk fault " + std::to_string(static_cast<int>(fault)) + " at " +
                       place.block_id + " on " + place.node);
      disks_[place.node].faults[place.block_id] = fault;
      return;
    }
    case Kind::kLoseBlock:
      return LoseBlock();
    case Kind::kWrongWord:
      return SayWrongly();
  }
}

// Of any block of the stripe: the words of several requestors make several suspects.
void World::SayWrongly() {
  for (const auto& [repair_id, record] : state_.records) {
    if (record.state != RepairState::kRunning || !record.hosts.empty()) continue;
    const Stripe& stripe = state_.stripes.at(StripeOf(record.block_ids[0]));
    const std::string block_id = scheduler_.random().Pick(stripe.blocks).block_id;
    scheduler_.Trace("the requestor of a repair calls " + block_id + " corrupt");
    scheduler_.Spawn(outside_, [this, id = repair_id, block_id] {
      const Host liar("liar", std::make_shared<Process>(Process{.name = "liar"}));
      const auto told =
          network_.Call<bool>(liar, kCoordinatorNode, std::chrono::seconds(5),
                              [id, block_id](Host* coordinator) -> absl::StatusOr<bool> {
                                static_cast<CoordinatorHost*>(coordinator)
                                    ->repairs()
                                    .ReportCorrupt("", id, block_id, "a requestor says so");
                                return true;
                              });
      scheduler_.Trace("which the coordinator was told: " + StatusText(told.status()));
    });
    return;
  }
}

void World::UndoAfter(Duration lasts, std::function<void()> undo) {
  if (!scenario_.lasting) scheduler_.After(lasts, std::move(undo));
}

// One a stripe at most: with a node that is lost besides, every code here still has enough.
void World::LoseBlock() {
  const Stripe& stripe = RandomStripe();
  if (!lossy_.insert(stripe.stripe_id).second) return;
  const BlockPlace& place = scheduler_.random().Pick(stripe.blocks);
  scheduler_.Trace("block " + place.block_id + " is lost on " + place.node);
  disks_[place.node].blocks.erase(place.block_id);
  lost_.insert(place.block_id);
}

}  // namespace ecpipe::sim

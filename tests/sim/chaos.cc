// SPDX-License-Identifier: Apache-2.0
// World: what is asked of the cluster, and what goes wrong meanwhile.
#include <algorithm>

#include "base/status.h"
#include "coordinator/planning/scheme.h"
#include "sim/world.h"

namespace ecpipe::sim {
namespace {

// No operation may take longer, whatever goes wrong: every wait in it is bounded, and their sum is
// below this.
constexpr Duration kLongestOperation = std::chrono::seconds(240);

}  // namespace

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
      return scheduler_.After(action.lasts, [this, node] { StartHelper(node); });
    case Kind::kCrashCoordinator:
      CrashCoordinator();
      return scheduler_.After(action.lasts, [this] { StartCoordinator(); });
    case Kind::kIsolate:
      scheduler_.Trace(node + " is isolated");
      network_.Isolate(node);
      return scheduler_.After(action.lasts, [this, node] { network_.Rejoin(node); });
    case Kind::kCutLink:
      scheduler_.Trace(node + " cannot reach " + other);
      network_.Cut(node, other);
      return scheduler_.After(action.lasts, [this, node, other] { network_.Mend(node, other); });
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
  }
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

bool World::MustSucceed(const Scenario::Operation& operation) const {
  const auto recovers = [](const Scenario::Operation& other) {
    return other.kind == Scenario::Operation::Kind::kRecover;
  };
  return scenario_.trouble == Scenario::Trouble::kNone &&
         operation.kind == Scenario::Operation::Kind::kRead &&
         // Whole blocks are stored and forwarded: over a slow network the last hop hears nothing
         // for longer than its stall timeout.
         scenario_.network.bytes_per_second > 1e6 && scenario_.network.window_bytes > 1000 &&
         operation.cancel_after == Duration(0) &&
         std::none_of(scenario_.operations.begin(), scenario_.operations.end(), recovers);
}

void World::Begin(const Scenario::Operation& operation) {
  if (operation.kind == Scenario::Operation::Kind::kRecover) return WipeAndRecover();
  const std::string name = "r" + std::to_string(requestors_++);
  auto host = std::make_shared<RequestorHost>(name, &network_, &checks_);
  ++operations_running_;
  scheduler_.Spawn(host->process(),
                   [this, host, kind = operation.kind, must_succeed = MustSucceed(operation)] {
                     Operate(host.get(), kind, must_succeed);
                     --operations_running_;
                   });
  if (operation.cancel_after == Duration(0)) return;
  scheduler_.After(operation.cancel_after,
                   [this, weak = std::weak_ptr<RequestorHost>(host), crash = operation.crash] {
                     const std::shared_ptr<RequestorHost> there = weak.lock();
                     if (there == nullptr) return;
                     scheduler_.Trace(there->node() + (crash ? " crashes" : " is cancelled"));
                     crash ? there->Crash() : there->Cancel();
                   });
}

void World::Operate(RequestorHost* host, Scenario::Operation::Kind kind, bool must_succeed) {
  ++outcome_.operations;
  const TimePoint begun = scheduler_.Now();
  RepairTarget target = ReadTarget();
  absl::Status status;
  std::string what = "read of " + target.block_ids[0] + " by " + target.scheme;
  if (kind == Scenario::Operation::Kind::kRepairToNodes) {
    target.offset = 0;
    target.bytes = 0;
    if (target.scheme == "direct") target.scheme = "rp";
    const std::string node = FreeNode(state_.stripes.at(StripeOf(target.block_ids[0])));
    what = "repair of " + target.block_ids[0] + " by " + target.scheme + " to " + node;
    scheduler_.Trace(host->node() + " begins " + what);
    status =
        node.empty() ? absl::UnavailableError("no free node") : host->RepairToNodes(target, {node});
  } else {
    scheduler_.Trace(host->node() + " begins " + what);
    status = host->Read(target);
  }
  scheduler_.Trace(host->node() + " ends: " + StatusText(status));
  if (status.ok()) ++outcome_.succeeded;
  checks_.Expect(!must_succeed || status.ok(),
                 what + " failed with nothing wrong: " + StatusText(status));
  checks_.Expect(scheduler_.Now() - begun <= kLongestOperation,
                 what + " took " + std::to_string(Seconds(scheduler_.Now() - begun)) + " s");
}

std::string World::StripeOf(const std::string& block_id) {
  return block_id.substr(0, block_id.find('-'));
}

RepairTarget World::ReadTarget() {
  Random& random = scheduler_.random();
  const Stripe& stripe = RandomStripe();
  RepairTarget target;
  target.block_ids = {random.Pick(stripe.blocks).block_id};
  std::vector<std::string> schemes = SchemesForLostBlocks();
  schemes.push_back("auto");
  target.scheme = random.Pick(schemes);
  target.slice_bytes = scenario_.slice_bytes;
  if (random.Chance(0.4)) {
    target.offset = random.Below(scenario_.block_bytes);
    target.bytes = random.Between(1, scenario_.block_bytes - target.offset);
  }
  return target;
}

std::string World::FreeNode(const Stripe& stripe) {
  std::vector<std::string> free;
  for (const auto& [node, helper] : helpers_) {
    const bool holds = std::any_of(stripe.blocks.begin(), stripe.blocks.end(),
                                   [&](const BlockPlace& place) { return place.node == node; });
    if (helper != nullptr && !holds && !wiped_.contains(node)) free.push_back(node);
  }
  return free.empty() ? "" : scheduler_.random().Pick(free);
}

void World::WipeAndRecover() {
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
  scheduler_.Spawn(outside_, [this, node] {
    BeginRecovery(node);
    --operations_running_;
  });
}

void World::BeginRecovery(const std::string& node) {
  const Host operator_host("operator", std::make_shared<Process>(Process{"operator"}));
  const TimePoint deadline = scheduler_.Now() + kLongestOperation;
  while (scheduler_.Now() < deadline) {
    const auto begun =
        network_.Call<bool>(operator_host, kCoordinatorNode, std::chrono::seconds(5),
                            [node](Host* host) -> absl::StatusOr<bool> {
                              RecoveryRequest request;
                              request.node = node;
                              ECPIPE_RETURN_IF_ERROR(static_cast<CoordinatorHost*>(host)
                                                         ->recoveries()
                                                         .Begin(request, IfLive::kRebuildMissing)
                                                         .status());
                              return true;
                            });
    scheduler_.Trace("recovery of " + node + ": " + StatusText(begun.status()));
    if (begun.ok() || absl::IsAlreadyExists(begun.status())) return;
    scheduler_.Sleep(std::chrono::seconds(1));
  }
  checks_.Violation("no recovery of " + node + " could be begun");
}

}  // namespace ecpipe::sim

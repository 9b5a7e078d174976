// SPDX-License-Identifier: Apache-2.0
// World: the blocks that are read and repaired.
#include <algorithm>

#include "base/status.h"
#include "coordinator/planning/scheme.h"
#include "sim/world.h"

namespace ecpipe::sim {
namespace {

using Kind = Scenario::Operation::Kind;

bool IsRepair(Kind kind) {
  return kind == Kind::kRepairToNodes || kind == Kind::kRepairSeveralToNodes;
}

size_t BlocksOf(Kind kind) {
  return kind == Kind::kReadSeveral || kind == Kind::kRepairSeveralToNodes ? 2 : 1;
}

// The schemes that rebuild so many blocks at once.
std::vector<std::string> SchemesFor(size_t blocks) {
  std::vector<std::string> names{"auto"};
  for (const Scheme* scheme : AllSchemes()) {
    if (scheme->kind != SchemeKind::kDirect && scheme->most_failed >= blocks) {
      names.emplace_back(scheme->name);
    }
  }
  return names;
}

}  // namespace

bool World::MustSucceed(const Scenario::Operation& operation) const {
  const auto recovers = [](const Scenario::Operation& other) {
    return other.kind == Kind::kRecover;
  };
  return scenario_.trouble == Scenario::Trouble::kNone && !IsRepair(operation.kind) &&
         // Whole blocks are stored and forwarded: over a slow network the last hop hears nothing
         // for longer than its stall timeout.
         scenario_.network.bytes_per_second > 1e6 && scenario_.network.window_bytes > 1000 &&
         operation.cancel_after == Duration(0) &&
         std::none_of(scenario_.operations.begin(), scenario_.operations.end(), recovers);
}

void World::Begin(const Scenario::Operation& operation) {
  if (operation.kind == Kind::kRecover) return WipeAndRecover(operation);
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

void World::Operate(RequestorHost* host, Kind kind, bool must_succeed) {
  ++outcome_.operations;
  const TimePoint begun = scheduler_.Now();
  const RepairTarget target = TargetFor(kind, must_succeed);
  std::string what = IsRepair(kind) ? "repair of" : "read of";
  for (const std::string& block_id : target.block_ids) what += " " + block_id;
  what += " by " + target.scheme + (target.verify.empty() ? "" : ", verified by " + target.verify);
  std::vector<std::string> nodes;
  if (IsRepair(kind)) {
    nodes = FreeNodes(state_.stripes.at(StripeOf(target.block_ids[0])), target.block_ids.size());
    for (const std::string& node : nodes) what += " to " + node;
  }
  scheduler_.Trace(host->node() + " begins " + what);
  absl::Status status;
  if (!IsRepair(kind)) {
    status = host->Read(target);
  } else if (nodes.empty()) {
    status = absl::UnavailableError("there are too few free nodes");
  } else {
    status = host->RepairToNodes(target, nodes);
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

RepairTarget World::TargetFor(Kind kind, bool must_succeed) {
  Random& random = scheduler_.random();
  std::vector<BlockPlace> blocks = RandomStripe().blocks;
  RepairTarget target;
  for (size_t i = 0; i < BlocksOf(kind); ++i) {
    const auto chosen = blocks.begin() + static_cast<ptrdiff_t>(random.Below(blocks.size()));
    target.block_ids.push_back(chosen->block_id);
    blocks.erase(chosen);
  }
  target.scheme = random.Pick(SchemesFor(target.block_ids.size()));
  if (kind == Kind::kReadDirect) {
    target.prefer_direct = random.Chance(0.5);
    target.scheme = target.prefer_direct ? "auto" : "direct";
  }
  target.slice_bytes = scenario_.slice_bytes;
  if (!IsRepair(kind) && random.Chance(0.4)) {
    target.offset = random.Below(scenario_.block_bytes);
    target.bytes = random.Between(1, scenario_.block_bytes - target.offset);
  }
  // Wants more survivors than there may be.
  if (!must_succeed && kind != Kind::kReadDirect && random.Chance(0.2)) {
    target.verify = random.Pick<std::string>({"parity", "locate"});
  }
  return target;
}

std::vector<std::string> World::FreeNodes(const Stripe& stripe, size_t count) {
  std::vector<std::string> free;
  for (const auto& [node, helper] : helpers_) {
    const bool holds = std::any_of(stripe.blocks.begin(), stripe.blocks.end(),
                                   [&](const BlockPlace& place) { return place.node == node; });
    if (helper != nullptr && !holds && !wiped_.contains(node)) free.push_back(node);
  }
  if (free.size() < count) return {};
  std::vector<std::string> chosen;
  while (chosen.size() < count) {
    const auto next = free.begin() + static_cast<ptrdiff_t>(scheduler_.random().Below(free.size()));
    chosen.push_back(*next);
    free.erase(next);
  }
  return chosen;
}

}  // namespace ecpipe::sim

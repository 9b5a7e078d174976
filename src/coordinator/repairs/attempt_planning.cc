// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator, how an attempt gets its plan, and the plan its parts.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "base/bytes/sha256.h"
#include "base/status.h"
#include "coordinator/repairs/part_builder.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "model/plan/random_ids.h"

namespace ecpipe {
namespace {

absl::Status LoadedAnew(const std::string& stripe_id) {
  return absl::AbortedError("stripe " + stripe_id +
                            " was loaded anew while the repair ran, so that what it has is of "
                            "other bytes; ask for the block again");
}

// Two stripes have the same one if SameBytes says so of them.
std::string DigestOf(const Stripe& stripe) {
  // Ids and codes have no newline.
  std::string text =
      stripe.stripe_id + "\n" + stripe.code + "\n" + std::to_string(stripe.block_bytes) + "\n";
  for (const BlockPlace& place : stripe.blocks) {
    text += place.block_id + "\n" + place.sha256 + "\n";
  }
  Sha256 sha256;
  sha256.Update({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return sha256.FinishHex();
}

}  // namespace

absl::StatusOr<PlannedRepair> RepairCoordinator::Explain(const RepairRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const WantedBlocks wanted, Locate(request));
  return planner_.Explain(request, wanted);
}

absl::StatusOr<WantedBlocks> RepairCoordinator::Locate(const RepairRequest& request) {
  if (request.facts) return FindWanted(*request.facts, request.block_ids, &nodes_);
  return FindWanted(catalog_, request.block_ids);
}

absl::Status RepairCoordinator::CheckSameStripe(RepairId repair_id, const Stripe& now) {
  MutexLock lock(&mutex_);
  const auto found = repairs_.find(repair_id);
  if (found == repairs_.end() || SameBytes(found->second.stripe, now)) return absl::OkStatus();
  return LoadedAnew(now.stripe_id);
}

absl::Status RepairCoordinator::CheckSameStripe(const ResumePoint& from, const Stripe& now) {
  if (from.stripe_digest.empty() || from.stripe_digest == DigestOf(now)) return absl::OkStatus();
  return LoadedAnew(now.stripe_id);
}

event::Planned RepairCoordinator::PlanAttempt(RepairId repair_id, const action::Plan& plan) {
  event::Planned planned{.plan = absl::UnknownError(""), .left_out = plan.left_out};
  const absl::StatusOr<WantedBlocks> wanted = Locate(plan.request);
  if (!wanted.ok()) {
    planned.plan = wanted.status();
    return planned;
  }
  const absl::Status same =
      plan.request.facts ? absl::OkStatus() : CheckSameStripe(repair_id, wanted->stripe);
  if (!same.ok()) {
    planned.plan = same;
    return planned;
  }
  // Asked before planning: who registers meanwhile is in no plan.
  planned.gathered = Gathered(*wanted);
  LeftOut& left_out = planned.left_out;
  const TimePoint start = clock_->Now();
  absl::StatusOr<PlannedRepair> repair = PlanWithout(plan.request, *wanted, left_out.reasons());
  if (!repair.ok() && left_out.ReadmitReturned(Lives())) {
    repair = PlanWithout(plan.request, *wanted, left_out.reasons());
  }
  while (!repair.ok() && left_out.ReadmitOne()) {
    repair = PlanWithout(plan.request, *wanted, left_out.reasons());
  }
  {
    MutexLock lock(&mutex_);
    counts_.plan_seconds.Add(Seconds(clock_->Now() - start));
  }
  if (repair.ok()) {
    planned.plan = MakeParts(repair_id, plan, *std::move(repair));
  } else if (planned.gathered &&
             IsForWantOfRoom(repair.status(), plan.request, *wanted, left_out)) {
    planned.plan = absl::ResourceExhaustedError(repair.status().message());
  } else {
    planned.plan = repair.status();
  }
  return planned;
}

bool RepairCoordinator::IsForWantOfRoom(const absl::Status& why, const RepairRequest& request,
                                        const WantedBlocks& wanted, const LeftOut& left_out) {
  // A recovery waits for its helpers, whatever they lack.
  if (!absl::IsFailedPrecondition(why) || !request.hosts.empty()) return false;
  const LeftOut::Reasons with_room = left_out.WithRoomAgain();
  return with_room.size() < left_out.reasons().size() &&
         PlanWithout(request, wanted, with_room).ok();
}

absl::StatusOr<PlannedRepair> RepairCoordinator::PlanWithout(const RepairRequest& request,
                                                             const WantedBlocks& wanted,
                                                             const LeftOut::Reasons& left_out) {
  LeftOut::Reasons refused = left_out;
  for (const auto& [node, reason] : nodes_.Silent()) {
    // Without its hosts there is no repair.
    if (absl::c_linear_search(request.hosts, node)) continue;
    refused.emplace(node, "its helper answers no calls: " + reason);
  }
  if (refused.size() > left_out.size()) {
    absl::StatusOr<PlannedRepair> planned = planner_.Plan(request, wanted, refused);
    if (planned.ok()) return planned;
  }
  return planner_.Plan(request, wanted, left_out);
}

absl::StatusOr<PlannedAttempt> RepairCoordinator::MakeParts(RepairId repair_id,
                                                            const action::Plan& plan,
                                                            PlannedRepair planned) {
  const RepairRequest& request = plan.request;
  PartContext context{.repair_id = repair_id,
                      .attempt = plan.attempt,
                      .transport = request.transport,
                      .stripe = &planned.stripe,
                      .addresses = {},
                      .new_token = RandomToken};
  std::map<std::string, std::string> control_addresses;
  PlannedAttempt attempt;
  for (const NodeLoad& load : planned.cost.loads) {
    const std::optional<NodeView> node = nodes_.Find(load.node);
    if (!node) continue;
    const NodeRecord& record = node->record;
    control_addresses[load.node] = record.control_address;
    context.addresses[load.node] =
        request.transport == TransportKind::kRedis ? record.redis_address : record.data_address;
    attempt.incarnations[load.node] = record.incarnation;
  }
  ECPIPE_ASSIGN_OR_RETURN(auto parts, BuildParts(planned.plan, context));
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    const auto first_row = static_cast<Row>(i * planned.plan.layout.sub_blocks);
    parts.at(request.hosts[i]).stores = {
        {first_row, request.block_ids[i], planned.block_lengths[i]}};
  }
  // In the plan's order, so that a sender tends to know its edges before its receiver dials.
  for (const NodeLoad& load : planned.cost.loads) {
    const auto control = control_addresses.find(load.node);
    RepairPart& part = parts.at(load.node);
    part.background = request.background;
    if (control == control_addresses.end()) {
      attempt.requestor_part = std::move(part);
    } else {
      attempt.handouts.push_back({{load.node, control->second}, std::move(part)});
    }
  }
  if (!request.facts) attempt.stripe_digest = DigestOf(planned.stripe);
  attempt.planned = std::move(planned);
  return attempt;
}

}  // namespace ecpipe

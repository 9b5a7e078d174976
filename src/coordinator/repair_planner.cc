// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_planner.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "common/status.h"

namespace ecpipe {
namespace {

std::string Short(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds);
  return text;
}

// A requestor that bears a node's name would have its hop run there.
std::string RequestorName(const std::string& name) {
  return "requestor:" + (name.empty() ? std::string("anonymous") : name);
}

// Why the node cannot take part now; empty if it can.
std::string Unfit(const std::string& node, const std::optional<NodeView>& view,
                  TransportKind transport, const RepairPlanner::Refused& refused) {
  if (const auto found = refused.find(node); found != refused.end()) return found->second;
  if (!view) return "its helper has not registered";
  switch (view->state) {
    case NodeState::kDead:
      return "no heartbeat for " + Short(view->seconds_since_heartbeat) + " s";
    case NodeState::kDraining:
      return "its helper is shutting down";
    case NodeState::kLive:
      break;
  }
  if (transport == TransportKind::kRedis && view->record.redis_address.empty()) {
    return "its helper offers no redis transport";
  }
  return "";
}

// A survivor that can be used.
struct Candidate {
  int block_index = 0;
  size_t wish = 0;    // place in the request's order
  uint32_t load = 0;  // sessions that its helper runs
};

size_t PlaceIn(const std::vector<std::string>& order, const std::string& node) {
  return static_cast<size_t>(std::find(order.begin(), order.end(), node) - order.begin());
}

}  // namespace

absl::StatusOr<SliceGrid> RepairPlanner::GridFor(const RepairRequest& request,
                                                 uint64_t block_bytes) const {
  if (request.offset >= block_bytes || request.bytes > block_bytes - request.offset) {
    return absl::InvalidArgumentError(
        "bytes [" + std::to_string(request.offset) + ", " +
        (request.bytes == 0
             ? "end"
             : std::to_string(request.offset) + " + " + std::to_string(request.bytes)) +
        ") are not within the block's " + std::to_string(block_bytes) + " bytes");
  }
  SliceGrid grid;
  grid.offset = request.offset;
  grid.bytes = request.bytes == 0 ? block_bytes - request.offset : request.bytes;
  grid.slice_bytes = request.slice_bytes == 0 ? options_.default_slice_bytes : request.slice_bytes;
  ECPIPE_RETURN_IF_ERROR(grid.Validate());
  return grid;
}

absl::Status RepairPlanner::FindSurvivors(const RepairRequest& request,
                                          const BlockLocation& location, const Refused& refused,
                                          PlanRequest* plan_request) {
  const std::vector<BlockPlace>& blocks = location.stripe.blocks;
  std::string reasons;
  std::vector<Candidate> candidates;
  const bool direct = request.scheme == "direct";
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const BlockPlace& place = blocks[static_cast<size_t>(i)];
    const std::optional<NodeView> view = nodes_->Find(place.node);
    if (view) {
      plan_request->cluster.nodes.push_back({.node = place.node, .rack = view->record.rack});
    }
    if ((i == location.block_index) != direct) continue;
    const std::string reason = Unfit(place.node, view, request.transport, refused);
    if (reason.empty()) {
      candidates.push_back(
          {i, PlaceIn(request.helper_order, place.node), view->record.active_sessions});
    } else {
      reasons += "; " + place.block_id + " on " + place.node + ": " + reason;
    }
  }
  const auto refuse = [&](const std::string& what) {
    return absl::FailedPreconditionError(what + reasons);
  };
  if (direct) {
    if (candidates.empty()) return refuse("block " + request.block_id + " cannot be read directly");
    plan_request->equation = {{location.block_index}, {{location.block_index, {1}}}};
    return absl::OkStatus();
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::pair(a.wish, a.load) < std::pair(b.wish, b.load);
                   });
  std::vector<int> survivors;
  for (const Candidate& candidate : candidates) survivors.push_back(candidate.block_index);
  const ErasureCode& code = *plan_request->code;
  const int failed[] = {location.block_index};
  absl::StatusOr<RepairEquation> equation = code.Equation(failed, survivors);
  if (absl::IsFailedPrecondition(equation.status())) {
    return refuse(
        "block " + request.block_id + " cannot be repaired now: k = " + std::to_string(code.k()) +
        " blocks are needed, " + std::to_string(survivors.size()) + " survivors can be used");
  }
  ECPIPE_ASSIGN_OR_RETURN(plan_request->equation, std::move(equation));
  plan_request->survivors = std::move(survivors);
  return absl::OkStatus();
}

absl::Status RepairPlanner::FindRequestor(const RepairRequest& request,
                                          const BlockLocation& location, const Refused& refused,
                                          PlanRequest* plan_request) {
  if (request.host.empty()) {
    plan_request->requestors = {RequestorName(request.requestor)};
    plan_request->cluster.nodes.push_back(
        {.node = plan_request->requestors[0], .rack = request.requestor_rack});
    return absl::OkStatus();
  }
  const std::optional<NodeView> view = nodes_->Find(request.host);
  // A host only receives: it needs no redis-server of its own.
  const std::string reason = Unfit(request.host, view, TransportKind::kTcp, refused);
  if (!reason.empty()) {
    return absl::FailedPreconditionError("node " + request.host + " cannot take block " +
                                         request.block_id + ": " + reason);
  }
  const std::vector<BlockPlace>& blocks = location.stripe.blocks;
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    if (i == location.block_index || blocks[static_cast<size_t>(i)].node != request.host) continue;
    return absl::FailedPreconditionError("node " + request.host + " has a block of the stripe of " +
                                         request.block_id + " already");
  }
  plan_request->requestors = {request.host};
  plan_request->cluster.nodes.push_back({.node = request.host, .rack = view->record.rack});
  return absl::OkStatus();
}

absl::StatusOr<PlanRequest> RepairPlanner::MakeRequest(const RepairRequest& request,
                                                       const BlockLocation& location,
                                                       const Refused& refused) {
  const Stripe& stripe = location.stripe;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ErasureCode> code, codes_.Get(stripe.code));
  if (static_cast<int>(stripe.blocks.size()) != code->n()) {
    return absl::InternalError("stripe " + stripe.stripe_id + " has " +
                               std::to_string(stripe.blocks.size()) + " blocks, its code " +
                               code->name() + " needs " + std::to_string(code->n()));
  }
  PlanRequest plan_request;
  plan_request.scheme = request.scheme.empty() ? options_.default_scheme : request.scheme;
  ECPIPE_ASSIGN_OR_RETURN(plan_request.grid, GridFor(request, stripe.block_bytes));
  plan_request.code = code;
  plan_request.cluster.default_bytes_per_second = options_.link_bytes_per_second;
  plan_request.cluster.links = options_.links;
  for (const BlockPlace& place : stripe.blocks) plan_request.block_nodes.push_back(place.node);
  ECPIPE_RETURN_IF_ERROR(FindRequestor(request, location, refused, &plan_request));
  ECPIPE_RETURN_IF_ERROR(FindSurvivors(request, location, refused, &plan_request));
  return plan_request;
}

absl::StatusOr<PlannedRepair> RepairPlanner::Run(const PlanRequest& request, const Stripe& stripe) {
  PlannedRepair planned;
  ECPIPE_ASSIGN_OR_RETURN(planned.plan, ChoosePlan(request));
  planned.cost = EstimateCost(planned.plan, request.cluster);
  planned.stripe = stripe;
  for (const PlanNode& node : request.cluster.nodes) planned.racks[node.node] = node.rack;
  return planned;
}

absl::StatusOr<PlannedRepair> RepairPlanner::Plan(const RepairRequest& request,
                                                  const BlockLocation& location,
                                                  const Refused& refused) {
  ECPIPE_ASSIGN_OR_RETURN(const PlanRequest plan_request, MakeRequest(request, location, refused));
  return Run(plan_request, location.stripe);
}

absl::StatusOr<PlannedRepair> RepairPlanner::Explain(const RepairRequest& request,
                                                     const BlockLocation& location) {
  ECPIPE_ASSIGN_OR_RETURN(const PlanRequest plan_request, MakeRequest(request, location, {}));
  ECPIPE_ASSIGN_OR_RETURN(PlannedRepair planned, Run(plan_request, location.stripe));
  if (planned.plan.scheme != "direct") {
    ECPIPE_ASSIGN_OR_RETURN(planned.predictions, PredictAll(plan_request));
  }
  return planned;
}

}  // namespace ecpipe

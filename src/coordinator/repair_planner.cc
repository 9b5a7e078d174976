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

template <typename Value>
bool Contains(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// "block b1" or "blocks b1, b2".
std::string Named(const std::vector<std::string>& block_ids) {
  std::string text = block_ids.size() == 1 ? "block" : "blocks";
  for (const std::string& id : block_ids) text += (&id == &block_ids[0] ? " " : ", ") + id;
  return text;
}

// The part of each sub-block that the range touches, in whole units, and in slices of whole units:
// then a slice of all sub-blocks is a piece of the block.
SliceGrid OverSubBlocks(const SliceGrid& range, const BlockLayout& layout) {
  if (layout.sub_blocks == 1) return range;
  const uint64_t unit = layout.unit_bytes;
  const uint64_t group = layout.group_bytes();
  const uint64_t first = range.offset / group;
  const uint64_t end = (range.offset + range.bytes + group - 1) / group;
  SliceGrid grid;
  grid.offset = first * unit;
  grid.bytes = (end - first) * unit;
  const uint64_t units = std::min<uint64_t>(range.slice_bytes, kMaxSliceBytes) / unit;
  grid.slice_bytes = static_cast<uint32_t>(std::max<uint64_t>(1, units) * unit);
  return grid;
}

size_t PlaceIn(const std::vector<std::string>& order, const std::string& node) {
  return static_cast<size_t>(std::find(order.begin(), order.end(), node) - order.begin());
}

}  // namespace

absl::StatusOr<LostBlocks> FindLost(Catalog* catalog, const std::vector<std::string>& block_ids) {
  if (block_ids.empty() || block_ids.size() > kMaxRows) {
    return absl::InvalidArgumentError("a request names from 1 to " + std::to_string(kMaxRows) +
                                      " blocks, not " + std::to_string(block_ids.size()));
  }
  ECPIPE_ASSIGN_OR_RETURN(BlockLocation first, catalog->FindBlock(block_ids[0]));
  LostBlocks lost{std::move(first.stripe), {}};
  for (const std::string& id : block_ids) {
    const auto place = std::find_if(lost.stripe.blocks.begin(), lost.stripe.blocks.end(),
                                    [&](const BlockPlace& block) { return block.block_id == id; });
    if (place == lost.stripe.blocks.end()) {
      return absl::InvalidArgumentError("block " + id + " is not of stripe " +
                                        lost.stripe.stripe_id + ", as " + block_ids[0] + " is");
    }
    const int index = static_cast<int>(place - lost.stripe.blocks.begin());
    if (Contains(lost.indices, index)) {
      return absl::InvalidArgumentError("block " + id + " is named twice");
    }
    lost.indices.push_back(index);
  }
  return lost;
}

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

absl::Status RepairPlanner::FindSurvivors(const RepairRequest& request, const LostBlocks& lost,
                                          const Refused& refused, PlanRequest* plan_request) {
  const std::vector<BlockPlace>& blocks = lost.stripe.blocks;
  std::string reasons;
  std::vector<Candidate> candidates;
  const bool direct = request.scheme == "direct";
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const BlockPlace& place = blocks[static_cast<size_t>(i)];
    const std::optional<NodeView> view = nodes_->Find(place.node);
    if (view) {
      plan_request->cluster.nodes.push_back({.node = place.node, .rack = view->record.rack});
    }
    if (Contains(lost.indices, i) != direct) continue;
    const std::string reason = Unfit(place.node, view, request.transport, refused);
    if (reason.empty()) {
      candidates.push_back(
          {i, PlaceIn(request.helper_order, place.node), view->record.active_sessions});
    } else {
      reasons += "; " + place.block_id + " on " + place.node + ": " + reason;
    }
  }
  const auto refuse = [&](const std::string& what) {
    return absl::FailedPreconditionError(Named(request.block_ids) + " cannot be " + what + reasons);
  };
  if (direct) {
    if (candidates.empty()) return refuse("read directly");
    plan_request->equation = {lost.indices, {{lost.indices[0], {1}}}};
    return absl::OkStatus();
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::pair(a.wish, a.load) < std::pair(b.wish, b.load);
                   });
  std::vector<int> survivors;
  for (const Candidate& candidate : candidates) survivors.push_back(candidate.block_index);
  const ErasureCode& code = *plan_request->code;
  absl::StatusOr<RepairEquation> equation = code.Equation(lost.indices, survivors);
  if (absl::IsFailedPrecondition(equation.status())) {
    return refuse("repaired now: k = " + std::to_string(code.k()) + " blocks are needed, " +
                  std::to_string(survivors.size()) + " survivors can be used");
  }
  ECPIPE_ASSIGN_OR_RETURN(plan_request->equation, std::move(equation));
  plan_request->survivors = std::move(survivors);
  return absl::OkStatus();
}

std::string RepairPlanner::UnfitHost(const std::string& host, TransportKind transport,
                                     const LostBlocks& lost, const Refused& refused,
                                     const PlanRequest& plan_request) {
  if (Contains(plan_request.requestors, host)) return "it takes another of the blocks";
  for (int i = 0; i < static_cast<int>(lost.stripe.blocks.size()); ++i) {
    const bool here = lost.stripe.blocks[static_cast<size_t>(i)].node == host;
    if (here && !Contains(lost.indices, i)) return "it has a block of the stripe already";
  }
  return Unfit(host, nodes_->Find(host), transport, refused);
}

absl::Status RepairPlanner::FindRequestors(const RepairRequest& request, const LostBlocks& lost,
                                           const Refused& refused, uint64_t bytes,
                                           PlanRequest* plan_request) {
  if (request.hosts.empty()) {
    const std::string name = RequestorName(request.requestor);
    plan_request->requestors.assign(lost.indices.size(), name);
    plan_request->cluster.nodes.push_back({.node = name, .rack = request.requestor_rack});
    return absl::OkStatus();
  }
  if (request.hosts.size() != lost.indices.size()) {
    return absl::InvalidArgumentError(std::to_string(request.hosts.size()) + " nodes are to take " +
                                      std::to_string(lost.indices.size()) +
                                      " blocks; name one for each");
  }
  if (bytes != lost.stripe.block_bytes || request.scheme == "direct") {
    return absl::InvalidArgumentError("nodes take whole blocks that are rebuilt");
  }
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    const std::string& host = request.hosts[i];
    const std::string reason = UnfitHost(host, request.transport, lost, refused, *plan_request);
    if (!reason.empty()) {
      return absl::FailedPreconditionError("node " + host + " cannot take block " +
                                           request.block_ids[i] + ": " + reason);
    }
    plan_request->requestors.push_back(host);
    plan_request->cluster.nodes.push_back({.node = host, .rack = nodes_->Find(host)->record.rack});
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanRequest> RepairPlanner::MakeRequest(const RepairRequest& request,
                                                       const LostBlocks& lost,
                                                       const Refused& refused,
                                                       PlannedRepair* planned) {
  const Stripe& stripe = lost.stripe;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ErasureCode> code, codes_.Get(stripe.code));
  if (static_cast<int>(stripe.blocks.size()) != code->n()) {
    return absl::InternalError("stripe " + stripe.stripe_id + " has " +
                               std::to_string(stripe.blocks.size()) + " blocks, its code " +
                               code->name() + " needs " + std::to_string(code->n()));
  }
  ECPIPE_ASSIGN_OR_RETURN(const SliceGrid range, GridFor(request, stripe.block_bytes));
  planned->stripe = stripe;
  planned->offset = range.offset;
  planned->bytes = range.bytes;
  PlanRequest plan_request;
  plan_request.scheme = request.scheme.empty() ? options_.default_scheme : request.scheme;
  plan_request.code = code;
  plan_request.cluster.default_bytes_per_second = options_.link_bytes_per_second;
  plan_request.cluster.rack_bytes_per_second = options_.rack_bytes_per_second;
  for (const BlockPlace& place : stripe.blocks) plan_request.block_nodes.push_back(place.node);
  ECPIPE_RETURN_IF_ERROR(FindRequestors(request, lost, refused, range.bytes, &plan_request));
  ECPIPE_RETURN_IF_ERROR(FindSurvivors(request, lost, refused, &plan_request));
  plan_request.grid = OverSubBlocks(range, plan_request.equation.layout);
  links_->FillIn(&plan_request.cluster);
  return plan_request;
}

absl::Status RepairPlanner::Run(const PlanRequest& request, PlannedRepair* planned) {
  ECPIPE_ASSIGN_OR_RETURN(planned->plan, ChoosePlan(request));
  planned->cost = EstimateCost(planned->plan, request.cluster);
  for (const PlanNode& node : request.cluster.nodes) planned->racks[node.node] = node.rack;
  return absl::OkStatus();
}

absl::StatusOr<PlannedRepair> RepairPlanner::Plan(const RepairRequest& request,
                                                  const LostBlocks& lost, const Refused& refused) {
  PlannedRepair planned;
  ECPIPE_ASSIGN_OR_RETURN(const PlanRequest plan_request,
                          MakeRequest(request, lost, refused, &planned));
  ECPIPE_RETURN_IF_ERROR(Run(plan_request, &planned));
  return planned;
}

absl::StatusOr<PlannedRepair> RepairPlanner::Explain(const RepairRequest& request,
                                                     const LostBlocks& lost) {
  PlannedRepair planned;
  ECPIPE_ASSIGN_OR_RETURN(const PlanRequest plan_request, MakeRequest(request, lost, {}, &planned));
  ECPIPE_RETURN_IF_ERROR(Run(plan_request, &planned));
  if (planned.plan.scheme != "direct") {
    ECPIPE_ASSIGN_OR_RETURN(planned.predictions, PredictAll(plan_request));
  }
  return planned;
}

}  // namespace ecpipe

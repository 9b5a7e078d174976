// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/part_builder.h"

#include <algorithm>

#include "base/status.h"
#include "model/plan/features.h"

namespace ecpipe {
namespace {

HopSpec SpecOf(const PlanLane& lane, uint32_t lane_index, uint32_t hop_index,
               const PartContext& context) {
  const PlanHop& hop = lane.hops[hop_index];
  HopSpec spec;
  spec.lane = lane_index;
  spec.hop = hop_index;
  spec.slices = lane.slices;
  spec.rows = hop.rows;
  spec.stored_rows = hop.stored_rows;
  if (hop.block_index >= 0) {
    const BlockPlace& place = context.stripe->blocks[static_cast<size_t>(hop.block_index)];
    spec.block = LocalBlock{place.block_id, context.stripe->BytesOf(hop.block_index),
                            hop.coefficients, hop.sub_blocks, place.sha256};
  }
  return spec;
}

// How many streams of a plan leave and enter each node.
class Streams {
 public:
  explicit Streams(const RepairPlan& plan) {
    for (const PlanLane& lane : plan.lanes) {
      for (const PlanHop& hop : lane.hops) {
        for (const PlanInput& input : hop.inputs) {
          ++out_[lane.hops[static_cast<size_t>(input.from_hop)].node];
          ++in_[hop.node];
        }
      }
    }
  }
  bool Alone(const std::string& from, const std::string& to) const {
    return from != to && out_.at(from) == 1 && in_.at(to) == 1;
  }

 private:
  std::map<std::string, int> out_;
  std::map<std::string, int> in_;
};

// Gives every edge of the lane a name, a token and the addresses of its ends.
absl::Status ConnectLane(const PlanLane& lane, uint32_t lane_index, const PartContext& context,
                         const Streams& streams, std::vector<HopSpec>* specs) {
  for (uint32_t to = 0; to < lane.hops.size(); ++to) {
    for (const PlanInput& input : lane.hops[to].inputs) {
      const auto from = static_cast<uint32_t>(input.from_hop);
      const std::string& sender = lane.hops[from].node;
      const auto address = context.addresses.find(sender);
      if (address == context.addresses.end() || address->second.empty()) {
        return absl::FailedPreconditionError("node " + sender + " has no address for the " +
                                             TransportName(context.transport) + " transport");
      }
      std::vector<HopOutput>& outputs = (*specs)[from].outputs;
      const EdgeId edge{context.repair_id, context.attempt, lane_index, from,
                        static_cast<uint32_t>(outputs.size())};
      const EdgeToken token = context.new_token();
      outputs.push_back(
          {edge, token, lane.hops[to].node, input.rows, streams.Alone(sender, lane.hops[to].node)});
      (*specs)[to].inputs.push_back(
          {edge, token, address->second, sender, input.rows, input.coefficients});
    }
  }
  return absl::OkStatus();
}

ParityCheck NamedCheck(ParityCheck check, const Stripe& stripe) {
  for (ParityCheck::Source& source : check.sources) {
    const BlockPlace& place = stripe.blocks[static_cast<size_t>(source.block_index)];
    source.block_id = place.block_id;
    source.node = place.node;
  }
  return check;
}

}  // namespace

absl::StatusOr<std::map<std::string, RepairPart>> BuildParts(const RepairPlan& plan,
                                                             const PartContext& context) {
  const Streams streams(plan);
  std::map<std::string, RepairPart> parts;
  for (uint32_t lane_index = 0; lane_index < plan.lanes.size(); ++lane_index) {
    const PlanLane& lane = plan.lanes[lane_index];
    std::vector<HopSpec> specs;
    for (uint32_t hop = 0; hop < lane.hops.size(); ++hop) {
      specs.push_back(SpecOf(lane, lane_index, hop, context));
    }
    ECPIPE_RETURN_IF_ERROR(ConnectLane(lane, lane_index, context, streams, &specs));
    for (size_t hop = 0; hop < specs.size(); ++hop) {
      RepairPart& part = parts[lane.hops[hop].node];
      part.repair_id = context.repair_id;
      part.attempt = context.attempt;
      part.grid = plan.grid;
      part.layout = plan.layout;
      part.serial = plan.serial;
      part.transport = context.transport;
      part.needs = part.needs.Or(NeedsOf(plan, lane.hops[hop]));
      part.hops.push_back(std::move(specs[hop]));
    }
  }
  for (auto& [node, part] : parts) {
    const bool stores = std::any_of(part.hops.begin(), part.hops.end(),
                                    [](const HopSpec& hop) { return !hop.stored_rows.empty(); });
    if (!stores) continue;
    part.check = NamedCheck(plan.check, *context.stripe);
    for (const int failed : plan.failed) {
      part.sha256.push_back(context.stripe->blocks[static_cast<size_t>(failed)].sha256);
    }
  }
  return parts;
}

}  // namespace ecpipe

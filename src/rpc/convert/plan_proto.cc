// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/plan_proto.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "rpc/convert/part_proto.h"

namespace ecpipe {
namespace {

absl::StatusOr<PlanHop> HopFromProto(const v1::ExplainRepairResponse::PlannedHop& proto) {
  PlanHop hop;
  hop.node = proto.node_id();
  hop.block_index = proto.block_index();
  ECPIPE_ASSIGN_OR_RETURN(hop.rows, RowsFromProto(proto.rows()));
  hop.coefficients = BytesOf(proto.coefficients());
  hop.sub_blocks.assign(proto.sub_blocks().begin(), proto.sub_blocks().end());
  ECPIPE_ASSIGN_OR_RETURN(hop.stored_rows, RowsFromProto(proto.stored_rows()));
  for (const auto& input : proto.inputs()) {
    ECPIPE_ASSIGN_OR_RETURN(std::vector<Row> rows, RowsFromProto(input.rows()));
    hop.inputs.push_back(
        {static_cast<int>(input.from_hop()), std::move(rows), BytesOf(input.coefficients())});
  }
  return hop;
}

}  // namespace

absl::StatusOr<RepairPlan> PlanFromProto(const v1::ExplainRepairResponse& proto) {
  RepairPlan plan;
  plan.scheme = proto.scheme();
  plan.grid = {proto.grid().offset(), proto.grid().bytes(), proto.grid().slice_bytes()};
  ECPIPE_RETURN_IF_ERROR(plan.grid.Validate());
  plan.layout = {proto.layout().sub_blocks(), proto.layout().unit_bytes()};
  plan.check.rows = proto.check_rows();
  plan.failed.assign(proto.failed().begin(), proto.failed().end());
  for (const auto& lane : proto.lanes()) {
    PlanLane& added = plan.lanes.emplace_back();
    ECPIPE_ASSIGN_OR_RETURN(added.slices, RunsFromProto(lane.slices(), plan.grid.slice_count()));
    for (const auto& proto_hop : lane.hops()) {
      ECPIPE_ASSIGN_OR_RETURN(PlanHop hop, HopFromProto(proto_hop));
      added.hops.push_back(std::move(hop));
    }
  }
  ECPIPE_RETURN_IF_ERROR(ValidatePlan(plan));
  return plan;
}

}  // namespace ecpipe

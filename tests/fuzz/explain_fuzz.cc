// SPDX-License-Identifier: Apache-2.0
// A coordinator's explanation of a plan as the client reads and prints it: refused, or a valid plan
// in three forms, of which the JSON is JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "requestor/cli/plan_render.h"
#include "rpc/convert/plan_proto.h"
#include "rpc/convert/repair_proto.h"

namespace ecpipe {
namespace {

// Quotes open and close within each line; what is escaped does not count.
bool QuotesMatch(const std::string& dot) {
  bool open = false;
  for (size_t i = 0; i < dot.size(); ++i) {
    if (dot[i] == '\\' && open) {
      ++i;
    } else if (dot[i] == '"') {
      open = !open;
    }
  }
  return !open;
}

void Render(const RepairPlan& plan, const v1::ExplainRepairResponse& proto) {
  ExplainedRepair repair;
  repair.plan = plan;
  repair.stripe_id = proto.stripe_id();
  repair.code = proto.code();
  repair.cost = CostFromProto(proto.cost());
  for (const auto& lane : proto.lanes()) {
    for (const auto& hop : lane.hops()) {
      repair.block_ids[hop.block_index()] = hop.block_id();
      repair.racks[hop.node_id()] = hop.rack();
    }
  }
  for (const auto& prediction : proto.predictions()) {
    repair.predictions.push_back(PredictionFromProto(prediction));
  }
  ECPIPE_CHECK(!PlanAsText(repair).empty());
  ECPIPE_CHECK(nlohmann::json::accept(PlanAsJson(repair)));
  ECPIPE_CHECK(QuotesMatch(PlanAsDot(repair)));
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::v1::ExplainRepairResponse proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto plan = ecpipe::PlanFromProto(proto);
  if (!plan.ok()) return 0;
  ECPIPE_CHECK(ecpipe::ValidatePlan(*plan).ok());
  // A row on the wire that is too large must not become another, smaller one.
  for (int i = 0; i < proto.lanes_size(); ++i) {
    for (int j = 0; j < proto.lanes(i).hops_size(); ++j) {
      const auto& rows = plan->lanes[static_cast<size_t>(i)].hops[static_cast<size_t>(j)].rows;
      const auto& sent = proto.lanes(i).hops(j).rows();
      ECPIPE_CHECK(std::equal(rows.begin(), rows.end(), sent.begin(), sent.end()));
    }
  }
  ecpipe::Render(*plan, proto);
  return 0;
}

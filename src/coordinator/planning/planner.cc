// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/planner.h"

#include <algorithm>

#include "base/status.h"
#include "coordinator/planning/schemes.h"

namespace ecpipe {
namespace {

using Planner = absl::StatusOr<PlanLanes> (*)(const PlanRequest&);

// What of the cluster a scheme looks at. Where that is not known, or the same everywhere, it has
// nothing to win over rp; kManyRows: with a single failed block. Baselines are there to compare
// with.
enum class LooksAt { kNothing, kLinks, kRacks, kManyRows, kBaseline };

// How slices flow: as asked for, the whole range as one slice, or one slice at a time.
enum class Flow { kPipelined, kWholeBlock, kSerial };

struct Scheme {
  const char* name;
  Planner planner;
  size_t most_failed;  // failed blocks that one plan can rebuild
  LooksAt looks_at;
  Flow flow = Flow::kPipelined;
};

constexpr Scheme kSchemes[] = {
    {"rp", PlanRepairPipelining, kMaxRows, LooksAt::kNothing},
    {"rp-weighted", PlanWeighted, kMaxRows, LooksAt::kLinks},
    {"rp-rack", PlanRackAware, kMaxRows, LooksAt::kRacks},
    {"rp-cyclic", PlanCyclic, kMaxRows, LooksAt::kLinks},
    {"rp-all", PlanAllSurvivors, kMaxRows, LooksAt::kLinks},
    {"mixed", PlanMixed, kMaxRows, LooksAt::kManyRows},
    {"ppr", PlanPpr, kMaxRows, LooksAt::kNothing},
    {"conventional", PlanConventional, kMaxRows, LooksAt::kNothing},
    {"pipe-b", PlanRepairPipelining, kMaxRows, LooksAt::kBaseline, Flow::kWholeBlock},
    {"pipe-s", PlanRepairPipelining, kMaxRows, LooksAt::kBaseline, Flow::kSerial},
    {kDirectScheme, PlanDirect, 1, LooksAt::kBaseline},
};

bool KnowsLinks(const ClusterView& cluster) {
  return Links(cluster).HavePairs() ||
         std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [](const PlanNode& node) {
           return node.up_bytes_per_second > 0 || node.down_bytes_per_second > 0;
         });
}

bool KnowsRacks(const ClusterView& cluster) {
  const std::string* first = nullptr;
  for (const PlanNode& node : cluster.nodes) {
    if (node.rack.empty()) continue;
    if (first != nullptr && node.rack != *first) return true;
    first = &node.rack;
  }
  return false;
}

absl::Status CheckRequest(const PlanRequest& request) {
  ECPIPE_RETURN_IF_ERROR(request.grid.Validate());
  const RepairEquation& equation = request.equation;
  ECPIPE_RETURN_IF_ERROR(equation.layout.Validate());
  if (equation.failed.empty() || equation.rows() > kMaxRows) {
    return absl::InvalidArgumentError("a plan must repair from 1 to " + std::to_string(kMaxRows) +
                                      " blocks or sub-blocks");
  }
  if (request.requestors.size() != equation.failed.size()) {
    return absl::InvalidArgumentError("a plan needs exactly one requestor for each failed block");
  }
  const bool one_place = std::equal(request.requestors.begin() + 1, request.requestors.end(),
                                    request.requestors.begin());
  if (equation.check_rows > 0 && !one_place) {
    return absl::InvalidArgumentError(
        "a repair that is verified by parity must bring all its blocks to one requestor");
  }
  if (equation.terms.empty()) return absl::InvalidArgumentError("the repair equation is empty");
  for (const EquationTerm& term : equation.terms) {
    if (term.block_index < 0 ||
        static_cast<size_t>(term.block_index) >= request.block_nodes.size()) {
      return absl::InvalidArgumentError(
          "the repair equation uses block index " + std::to_string(term.block_index) +
          ", but the stripe has blocks 0 to " + std::to_string(request.block_nodes.size() - 1));
    }
    if (term.coefficients.size() != term.sub_blocks.size() * equation.rows()) {
      return absl::InvalidArgumentError(
          "each block in the repair equation needs exactly one coefficient for each failed block");
    }
  }
  for (const int block : request.survivors) {
    if (block < 0 || static_cast<size_t>(block) >= request.block_nodes.size()) {
      return absl::InvalidArgumentError(
          "the survivors include block index " + std::to_string(block) +
          ", but the stripe has blocks 0 to " + std::to_string(request.block_nodes.size() - 1));
    }
  }
  return absl::OkStatus();
}

ParityCheck CheckOf(const RepairEquation& equation) {
  ParityCheck check;
  check.rows = equation.check_rows;
  for (const EquationTerm& term : equation.terms) {
    if (check.rows == 0) break;
    check.sources.push_back(
        {.block_index = term.block_index,
         .block_id = {},
         .node = {},
         .column = {term.coefficients.end() - check.rows, term.coefficients.end()}});
  }
  return check;
}

}  // namespace

std::vector<std::string> SchemeNames() {
  std::vector<std::string> names;
  for (const Scheme& scheme : kSchemes) names.push_back(scheme.name);
  return names;
}

std::vector<std::string> SchemesWorthATry(const ClusterView& cluster, size_t failed_blocks) {
  const bool links = KnowsLinks(cluster);
  const bool racks = KnowsRacks(cluster);
  std::vector<std::string> names;
  for (const Scheme& scheme : kSchemes) {
    if (scheme.looks_at == LooksAt::kBaseline) continue;
    if (scheme.looks_at == LooksAt::kLinks && !links) continue;
    if (scheme.looks_at == LooksAt::kRacks && !racks) continue;
    if (scheme.looks_at == LooksAt::kManyRows && failed_blocks == 1) continue;
    names.push_back(scheme.name);
  }
  return names;
}

std::vector<std::string> SchemesThatRepair() {
  std::vector<std::string> names;
  for (const Scheme& scheme : kSchemes) {
    if (scheme.looks_at != LooksAt::kBaseline) names.push_back(scheme.name);
  }
  return names;
}

absl::StatusOr<RepairPlan> MakePlan(const PlanRequest& asked) {
  ECPIPE_RETURN_IF_ERROR(CheckRequest(asked));
  PlanRequest request = asked;
  std::string known;
  for (const Scheme& scheme : kSchemes) {
    known += (known.empty() ? "" : ", ") + std::string(scheme.name);
    if (request.scheme != scheme.name) continue;
    if (request.equation.failed.size() > scheme.most_failed) {
      return absl::InvalidArgumentError("scheme " + request.scheme +
                                        " repairs one block at a time, not " +
                                        std::to_string(request.equation.failed.size()));
    }
    if (scheme.flow == Flow::kWholeBlock) {
      const uint32_t unit = std::max(1u, request.equation.layout.unit_bytes);
      const uint32_t most = kMaxSliceBytes / unit * unit;
      request.grid.slice_bytes =
          static_cast<uint32_t>(std::min<uint64_t>(request.grid.bytes, most));
    }
    RepairPlan plan;
    plan.serial = scheme.flow == Flow::kSerial;
    plan.scheme = request.scheme;
    plan.grid = request.grid;
    plan.failed = request.equation.failed;
    plan.layout = request.equation.layout;
    plan.check = CheckOf(request.equation);
    ECPIPE_ASSIGN_OR_RETURN(plan.lanes, scheme.planner(request));
    ECPIPE_RETURN_IF_ERROR(ValidatePlan(plan));
    return plan;
  }
  return absl::InvalidArgumentError("unknown scheme '" + request.scheme + "'; known are " + known);
}

}  // namespace ecpipe

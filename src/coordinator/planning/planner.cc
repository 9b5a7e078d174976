// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/planner.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe {
namespace {

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

absl::StatusOr<RepairPlan> MakePlan(const PlanRequest& asked) {
  ECPIPE_RETURN_IF_ERROR(CheckRequest(asked));
  const Scheme* scheme = FindScheme(asked.scheme);
  if (scheme == nullptr) {
    return absl::InvalidArgumentError("unknown scheme '" + asked.scheme + "'; known are " +
                                      absl::StrJoin(SchemeNames(), ", "));
  }
  if (asked.equation.failed.size() > scheme->most_failed) {
    return absl::InvalidArgumentError("scheme " + asked.scheme +
                                      " repairs one block at a time, not " +
                                      std::to_string(asked.equation.failed.size()));
  }
  PlanRequest request = asked;
  if (scheme->flow == SchemeFlow::kWholeBlock) {
    const uint32_t unit = std::max(1u, request.equation.layout.unit_bytes);
    const uint32_t most = kMaxSliceBytes / unit * unit;
    request.grid.slice_bytes = static_cast<uint32_t>(std::min<uint64_t>(request.grid.bytes, most));
  }
  RepairPlan plan;
  plan.serial = scheme->flow == SchemeFlow::kSerial;
  plan.scheme = request.scheme;
  plan.grid = request.grid;
  plan.failed = request.equation.failed;
  plan.layout = request.equation.layout;
  plan.check = CheckOf(request.equation);
  ECPIPE_ASSIGN_OR_RETURN(plan.lanes, scheme->plan(request));
  ECPIPE_RETURN_IF_ERROR(ValidatePlan(plan));
  return plan;
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lanes.h"

#include <algorithm>
#include <numeric>

namespace ecpipe {
namespace {

// A helper that sends its block as it is, or what is read of it, under rows 0, 1, ...: the receiver
// applies the coefficients.
PlanHop RawHop(const PlanRequest& request, const EquationTerm& term) {
  PlanHop hop = HelperHop(request, term);
  const size_t count = term.sub_blocks.size();
  hop.rows.resize(count);
  hop.coefficients.assign(count * count, 0);
  for (size_t i = 0; i < count; ++i) hop.coefficients[i * count + i] = 1;
  return hop;
}

// The hop of a requestor that takes its rows from `from_hop`.
PlanHop TakerHop(const Taker& taker, int from_hop) {
  PlanHop hop;
  hop.node = taker.node;
  hop.rows = taker.rows;
  hop.inputs = {PartialSums(from_hop, taker.rows)};
  hop.stored_rows = taker.rows;
  return hop;
}

}  // namespace

std::vector<Row> AllRows(const PlanRequest& request) {
  std::vector<Row> rows(request.equation.rows());
  std::iota(rows.begin(), rows.end(), Row{0});
  return rows;
}

PlanHop HelperHop(const PlanRequest& request, const EquationTerm& term) {
  PlanHop hop;
  hop.node = request.block_nodes[static_cast<size_t>(term.block_index)];
  hop.block_index = term.block_index;
  hop.rows = AllRows(request);
  hop.coefficients = term.coefficients;
  hop.sub_blocks = term.sub_blocks;
  return hop;
}

PlanInput PartialSums(int from_hop, std::vector<Row> rows) {
  return {from_hop, std::move(rows), {}};
}

std::vector<Taker> Takers(const PlanRequest& request) {
  std::vector<Taker> takers;
  for (const Row row : AllRows(request)) {
    // Check rows, which are the last ones, end where all rows do.
    const size_t block = row / request.equation.layout.sub_blocks;
    const std::string& node = request.requestors[std::min(block, request.requestors.size() - 1)];
    const auto known = std::find_if(takers.begin(), takers.end(),
                                    [&](const Taker& taker) { return taker.node == node; });
    if (known == takers.end()) {
      takers.push_back({node, {row}});
    } else {
      known->rows.push_back(row);
    }
  }
  return takers;
}

PlanHop CentreHop(const PlanRequest& request, const Taker& centre) {
  PlanHop hop;
  hop.node = centre.node;
  hop.rows = AllRows(request);
  hop.stored_rows = centre.rows;
  return hop;
}

PlanLane LaneOfAllSlices(const PlanRequest& request) {
  PlanLane lane;
  lane.slices = LaneSlices::All(request.grid.slice_count());
  return lane;
}

void AddTakers(const PlanRequest& request, PlanLane* lane) {
  const int from = static_cast<int>(lane->hops.size()) - 1;
  const std::string sender = lane->hops.back().node;
  const bool centre = !lane->hops.back().stored_rows.empty();
  for (const Taker& taker : Takers(request)) {
    if (!centre || taker.node != sender) lane->hops.push_back(TakerHop(taker, from));
  }
}

PlanLane PathLane(const PlanRequest& request, const std::vector<EquationTerm>& path) {
  PlanLane lane = LaneOfAllSlices(request);
  for (const EquationTerm& term : path) {
    PlanHop hop = HelperHop(request, term);
    const int before = static_cast<int>(lane.hops.size()) - 1;
    if (before >= 0) hop.inputs.push_back(PartialSums(before, hop.rows));
    lane.hops.push_back(std::move(hop));
  }
  AddTakers(request, &lane);
  return lane;
}

PlanLane StarLane(const PlanRequest& request, const Taker& taker) {
  const bool raw = request.equation.rows() > 1;
  PlanLane lane = LaneOfAllSlices(request);
  PlanHop centre = CentreHop(request, taker);
  for (const EquationTerm& term : request.equation.terms) {
    const int from = static_cast<int>(lane.hops.size());
    lane.hops.push_back(raw ? RawHop(request, term) : HelperHop(request, term));
    const std::vector<Row>& rows = lane.hops.back().rows;
    centre.inputs.push_back(raw ? PlanInput{from, rows, term.coefficients}
                                : PartialSums(from, rows));
  }
  lane.hops.push_back(std::move(centre));
  AddTakers(request, &lane);
  return lane;
}

PlanLanes LanesOverBlocks(const PlanRequest& request, const std::vector<LaneOverBlocks>& lanes) {
  const RepairEquation& base = request.equation;
  if (request.code == nullptr) return {};
  PlanLanes planned;
  std::vector<uint32_t> counts;
  for (const LaneOverBlocks& lane : lanes) {
    const absl::StatusOr<RepairEquation> equation =
        request.code->Equation(base.failed, lane.blocks);
    if (!equation.ok() || equation->terms.size() != base.terms.size()) return {};
    planned.push_back(PathLane(request, equation->terms));
    counts.push_back(lane.slices);
  }
  const std::vector<LaneSlices> whose = Interleaved(counts, request.grid.slice_count());
  for (size_t i = 0; i < planned.size(); ++i) planned[i].slices = whose[i];
  return planned;
}

absl::StatusOr<PlanLanes> PlanPath(const PlanRequest& request) {
  return PlanLanes{PathLane(request, request.equation.terms)};
}

}  // namespace ecpipe

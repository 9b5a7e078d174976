// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/schemes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"
#include "coordinator/planning/all_survivors.h"
#include "coordinator/planning/helper_paths.h"

namespace ecpipe {
namespace {

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

PlanInput PartialSums(int from_hop, std::vector<Row> rows) {
  return {from_hop, std::move(rows), {}};
}

PlanLane LaneOfAllSlices(const PlanRequest& request) {
  PlanLane lane;
  lane.slices = LaneSlices::All(request.grid.slice_count());
  return lane;
}

// A requestor, and the rows that end there.
struct Taker {
  std::string node;
  std::vector<Row> rows;
};

// In the order of their first rows.
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

// The hop of a requestor that takes its rows from `from_hop`.
PlanHop TakerHop(const Taker& taker, int from_hop) {
  PlanHop hop;
  hop.node = taker.node;
  hop.rows = taker.rows;
  hop.inputs = {PartialSums(from_hop, taker.rows)};
  hop.stored_rows = taker.rows;
  return hop;
}

// The hop of a requestor where everything is added up. It stores its own rows.
PlanHop CentreHop(const PlanRequest& request, const Taker& centre) {
  PlanHop hop;
  hop.node = centre.node;
  hop.rows = AllRows(request);
  hop.stored_rows = centre.rows;
  return hop;
}

// The lane's last hop sends each requestor its rows. When it is a requestor itself it has its own
// already.
void AddTakers(const PlanRequest& request, PlanLane* lane) {
  const int from = static_cast<int>(lane->hops.size()) - 1;
  const std::string sender = lane->hops.back().node;
  const bool centre = !lane->hops.back().stored_rows.empty();
  for (const Taker& taker : Takers(request)) {
    if (!centre || taker.node != sender) lane->hops.push_back(TakerHop(taker, from));
  }
}

// All helpers send to one requestor: with several rows their bytes as they are. All slices.
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

// A path through the helpers of these terms, in this order; the last one sends each failed block
// directly to its requestor. All slices.
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

// The share of the slices that takes the path; docs/design/004-several-blocks.md.
double PathShare(const PlanRequest& request, const std::vector<Taker>& takers) {
  const auto k = static_cast<double>(request.equation.terms.size());
  const auto f = static_cast<double>(request.equation.rows() / request.equation.layout.sub_blocks);
  const auto g = static_cast<double>(takers.size());
  double m = 0;  // blocks of the requestor that takes the most
  const size_t rows_of_block = request.equation.layout.sub_blocks;
  for (const Taker& taker : takers) {
    m = std::max(m, static_cast<double>(taker.rows.size() / rows_of_block));
  }
  const double as_centre = (k + m * (g - 1)) / g;
  return as_centre <= 1 ? 1 : (as_centre - 1) / (as_centre - 1 + f - m);
}

// Which slices each lane carries: some of each lane in turn, so that they arrive about in order.
std::vector<LaneSlices> Interleaved(const std::vector<SharedLane>& lanes, uint32_t slice_count) {
  // A lane may only lead the others by so many slices as a stream has credit for, hence short runs.
  constexpr uint32_t kMostRounds = 512;
  const auto lane_count = static_cast<uint32_t>(lanes.size());
  const uint64_t rounds = std::clamp(slice_count / lane_count, 1u, kMostRounds);
  std::vector<std::vector<SliceRun>> runs(lanes.size());
  uint32_t next = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      const uint64_t done = lanes[i].slices * round / rounds;
      const auto count = static_cast<uint32_t>(lanes[i].slices * (round + 1) / rounds - done);
      if (count > 0) runs[i].push_back({next, count, 1});
      next += count;
    }
  }
  std::vector<LaneSlices> slices;
  for (std::vector<SliceRun>& of_lane : runs) {
    slices.push_back(LaneSlices::Create(std::move(of_lane), slice_count).value());
  }
  return slices;
}

}  // namespace

absl::StatusOr<PlanLanes> PlanConventional(const PlanRequest& request) {
  return PlanLanes{StarLane(request, Takers(request)[0])};
}

absl::StatusOr<PlanLanes> PlanMixed(const PlanRequest& request) {
  const uint32_t slices = request.grid.slice_count();
  const std::vector<Taker> takers = Takers(request);
  const double path_share = PathShare(request, takers);
  std::vector<SharedLane> shares;
  PlanLanes lanes;
  const auto add = [&](PlanLane lane, uint32_t count) {
    if (count == 0) return;
    lanes.push_back(std::move(lane));
    shares.push_back({.slices = count, .helpers = {}});
  };
  const auto on_path = static_cast<uint32_t>(std::lround(path_share * slices));
  add(PathLane(request, request.equation.terms), on_path);
  const uint32_t in_stars = slices - on_path;
  for (uint64_t i = 0; i < takers.size(); ++i) {
    const uint64_t before = in_stars * i / takers.size();
    const uint64_t after = in_stars * (i + 1) / takers.size();
    add(StarLane(request, takers[i]), static_cast<uint32_t>(after - before));
  }
  const std::vector<LaneSlices> whose = Interleaved(shares, slices);
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i].slices = whose[i];
  return lanes;
}

absl::StatusOr<PlanLanes> PlanPpr(const PlanRequest& request) {
  PlanLane lane = LaneOfAllSlices(request);
  for (const EquationTerm& term : request.equation.terms) {
    lane.hops.push_back(HelperHop(request, term));
  }
  lane.hops.push_back(CentreHop(request, Takers(request)[0]));
  // Each round pairs neighbours from the back, the left one sends to the right one and is done; so
  // the requestor, the last, is in every round, and an odd one out waits at the front.
  std::vector<int> standing(lane.hops.size());
  std::iota(standing.begin(), standing.end(), 0);
  while (standing.size() > 1) {
    std::vector<int> next;
    for (size_t i = standing.size() % 2; i < standing.size(); i += 2) {
      lane.hops[static_cast<size_t>(standing[i + 1])].inputs.push_back(
          PartialSums(standing[i], AllRows(request)));
      next.push_back(standing[i + 1]);
    }
    if (standing.size() % 2 == 1) next.insert(next.begin(), standing[0]);
    standing = std::move(next);
  }
  AddTakers(request, &lane);
  return PlanLanes{std::move(lane)};
}

absl::StatusOr<PlanLanes> PlanRepairPipelining(const PlanRequest& request) {
  return PlanLanes{PathLane(request, request.equation.terms)};
}

absl::StatusOr<PlanLanes> PlanCyclic(const PlanRequest& request) {
  const uint32_t slices = request.grid.slice_count();
  const auto k = static_cast<uint32_t>(request.equation.terms.size());
  const uint32_t lane_count = std::clamp(k - 1, 1u, slices);
  std::vector<EquationTerm> ring = request.equation.terms;
  PlanLanes lanes;
  for (uint32_t first = 0; first < lane_count; ++first) {
    PlanLane lane = PathLane(request, ring);
    const SliceRun run{first, (slices - first + lane_count - 1) / lane_count, lane_count};
    ECPIPE_ASSIGN_OR_RETURN(lane.slices, LaneSlices::Create({run}, slices));
    lanes.push_back(std::move(lane));
    std::rotate(ring.begin(), ring.begin() + 1, ring.end());
  }
  return lanes;
}

absl::StatusOr<PlanLanes> PlanAllSurvivors(const PlanRequest& request) {
  const RepairEquation& base = request.equation;
  const auto k = static_cast<int>(base.terms.size());
  if (request.code == nullptr || static_cast<int>(request.survivors.size()) <= k) {
    return PlanRepairPipelining(request);
  }
  const Links links(request.cluster);
  std::vector<double> speeds;
  for (const int block : request.survivors) {
    const std::string& node = request.block_nodes[static_cast<size_t>(block)];
    speeds.push_back(std::min(links.Up(node), links.Down(node)));
  }
  const uint32_t slices = request.grid.slice_count();
  const std::vector<SharedLane> shared = ShareSlices(speeds, k, slices);
  const std::vector<LaneSlices> whose = Interleaved(shared, slices);
  PlanLanes lanes;
  for (size_t i = 0; i < shared.size(); ++i) {
    std::vector<int> blocks;
    for (const int helper : shared[i].helpers) {
      blocks.push_back(request.survivors[static_cast<size_t>(helper)]);
    }
    // Each lane ends at another helper, since the last one has only the requestor to send to.
    std::rotate(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(i % blocks.size()),
                blocks.end());
    const absl::StatusOr<RepairEquation> equation = request.code->Equation(base.failed, blocks);
    if (!equation.ok() || equation->terms.size() != base.terms.size()) {
      return PlanRepairPipelining(request);
    }
    lanes.push_back(PathLane(request, equation->terms));
    lanes.back().slices = whose[i];
  }
  return lanes;
}

absl::StatusOr<PlanLanes> PlanRackAware(const PlanRequest& request) {
  return PlanLanes{PathLane(request, RackAwarePath(request))};
}

absl::StatusOr<PlanLanes> PlanWeighted(const PlanRequest& request) {
  return PlanLanes{PathLane(request, WeightedPath(request))};
}

absl::StatusOr<PlanLanes> PlanDirect(const PlanRequest& request) {
  PlanLane lane = LaneOfAllSlices(request);
  lane.hops.push_back(HelperHop(request, request.equation.terms[0]));
  AddTakers(request, &lane);
  return PlanLanes{std::move(lane)};
}

}  // namespace ecpipe

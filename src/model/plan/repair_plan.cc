// SPDX-License-Identifier: Apache-2.0
#include "model/plan/repair_plan.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <set>

#include "base/bytes/sha256.h"
#include "base/status.h"

namespace ecpipe {

std::string RepairIdText(RepairId repair_id) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(repair_id));
  return text;
}

const char* TransportName(TransportKind kind) {
  return kind == TransportKind::kRedis ? "redis" : "tcp";
}

absl::StatusOr<TransportKind> TransportNamed(const std::string& name) {
  for (const TransportKind kind : {TransportKind::kTcp, TransportKind::kRedis}) {
    if (name == TransportName(kind)) return kind;
  }
  return absl::InvalidArgumentError("unknown transport '" + name + "'; known are tcp, redis");
}

namespace {

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

bool StrictlyAscending(const std::vector<Row>& rows) {
  return std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
}

bool Contains(const std::vector<Row>& all, const std::vector<Row>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

absl::Status CheckRows(const std::vector<Row>& rows, const char* what) {
  if (rows.empty()) return Bad(std::string(what) + " has no rows");
  if (rows.size() > kMaxRows || !StrictlyAscending(rows)) {
    return Bad(std::string(what) + " has more than " + std::to_string(kMaxRows) +
               " rows, or rows out of order");
  }
  return absl::OkStatus();
}

// A stream into a hop: partial sums of rows of the hop, or raw rows with coefficients.
absl::Status CheckInputRows(const std::vector<Row>& rows, const std::vector<uint8_t>& coefficients,
                            const std::vector<Row>& hop_rows) {
  ECPIPE_RETURN_IF_ERROR(CheckRows(rows, "an input"));
  if (coefficients.empty()) {
    return Contains(hop_rows, rows) ? absl::OkStatus()
                                    : Bad("an input brings a row that the hop does not accumulate");
  }
  if (coefficients.size() != rows.size() * hop_rows.size()) {
    return Bad("a raw input needs exactly one coefficient for each row of the hop");
  }
  return absl::OkStatus();
}

// What a hop reads of its own block, and how it adds that to its rows.
absl::Status CheckColumns(const std::vector<uint32_t>& sub_blocks,
                          const std::vector<uint8_t>& coefficients, size_t rows,
                          const BlockLayout& layout) {
  const bool ascending = std::adjacent_find(sub_blocks.begin(), sub_blocks.end(),
                                            std::greater_equal<>()) == sub_blocks.end();
  if (sub_blocks.empty() || !ascending || sub_blocks.back() >= layout.sub_blocks) {
    return Bad("the hop reads no sub-block of its block, or one that the block does not have");
  }
  if (coefficients.size() != sub_blocks.size() * rows) {
    return Bad("the block needs exactly one coefficient for each row");
  }
  return absl::OkStatus();
}

// ---- Parts ----------------------------------------------------------------------------------

absl::Status CheckEdge(const EdgeId& edge, const RepairPart& part, const HopSpec& hop) {
  if (edge.repair_id != part.repair_id || edge.attempt != part.attempt || edge.lane != hop.lane) {
    return Bad("an edge belongs to another repair, attempt or lane");
  }
  return absl::OkStatus();
}

absl::Status CheckBlock(const HopSpec& hop, const RepairPart& part) {
  if (!hop.block) return absl::OkStatus();
  if (hop.block->block_id.empty()) return Bad("the block has no id");
  if (!hop.block->sha256.empty() && !IsSha256Hex(hop.block->sha256)) {
    return Bad("the block's checksum is not a SHA-256");
  }
  ECPIPE_RETURN_IF_ERROR(
      CheckColumns(hop.block->sub_blocks, hop.block->coefficients, hop.rows.size(), part.layout));
  if (!part.layout.Fits(hop.block->bytes)) {
    return Bad("the block's length is not a multiple of its group of sub-block units");
  }
  const SliceGrid& grid = part.grid;
  const uint64_t end = hop.block->bytes / part.layout.sub_blocks;
  if (grid.offset >= end) {
    return Bad("the range begins beyond the block's " + std::to_string(hop.block->bytes) +
               " bytes");
  }
  // Only a block that is one piece goes on in zeros.
  if (part.layout.sub_blocks > 1 && grid.bytes > end - grid.offset) {
    return Bad("the range ends beyond the block's " + std::to_string(hop.block->bytes) + " bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckHop(const HopSpec& hop, const RepairPart& part) {
  if (hop.lane >= kMaxLanes) {
    return Bad("the lane's number is over the limit of " + std::to_string(kMaxLanes));
  }
  ECPIPE_RETURN_IF_ERROR(CheckRows(hop.rows, "the hop"));
  if (hop.slices.count() == 0) return Bad("the hop carries no slices");
  if (hop.slices.SliceIndex(hop.slices.count() - 1) >= part.grid.slice_count()) {
    return Bad("the hop carries slices outside the range");
  }
  ECPIPE_RETURN_IF_ERROR(CheckBlock(hop, part));
  if (!hop.block && hop.inputs.empty()) return Bad("the hop has neither a block nor an input");
  if (hop.outputs.empty() && hop.stored_rows.empty()) return Bad("the hop's rows go nowhere");
  if (hop.inputs.size() > kMaxHopInputs || hop.outputs.size() > kMaxHopOutputs) {
    return Bad("the hop has too many inputs or outputs");
  }
  for (const HopInput& input : hop.inputs) {
    ECPIPE_RETURN_IF_ERROR(CheckEdge(input.edge, part, hop));
    ECPIPE_RETURN_IF_ERROR(CheckInputRows(input.rows, input.coefficients, hop.rows));
    if (input.address.empty()) return Bad("an input has no address");
  }
  for (const HopOutput& output : hop.outputs) {
    ECPIPE_RETURN_IF_ERROR(CheckEdge(output.edge, part, hop));
    ECPIPE_RETURN_IF_ERROR(CheckRows(output.rows, "an output"));
    if (output.edge.from_hop != hop.hop) return Bad("an output starts at another hop");
    if (!Contains(hop.rows, output.rows)) {
      return Bad("an output sends a row that the hop does not accumulate");
    }
  }
  if (!StrictlyAscending(hop.stored_rows) || !Contains(hop.rows, hop.stored_rows)) {
    return Bad("a stored row is not among the rows that the hop accumulates");
  }
  return absl::OkStatus();
}

std::set<Row> StoredRows(const RepairPart& part) {
  std::set<Row> stored;
  for (const HopSpec& hop : part.hops) {
    stored.insert(hop.stored_rows.begin(), hop.stored_rows.end());
  }
  return stored;
}

// Check rows are the last of all rows, and come together with all others.
absl::Status CheckParity(const RepairPart& part) {
  const ParityCheck& check = part.check;
  if (check.rows == 0) {
    return check.sources.empty()
               ? absl::OkStatus()
               : Bad("sources of check rows are named, but there are no check rows");
  }
  if (check.rows > kMaxCheckRows || check.sources.size() > kMaxHopInputs) {
    return Bad("there are too many check rows or too many sources of check rows");
  }
  for (const ParityCheck::Source& source : check.sources) {
    if (source.column.size() != check.rows) {
      return Bad("a source needs exactly one coefficient for each check row");
    }
  }
  const std::set<Row> stored = StoredRows(part);
  if (stored.size() <= check.rows || *stored.rbegin() + size_t{1} != stored.size()) {
    return Bad("the check rows are not the last rows");
  }
  for (const HopSpec& hop : part.hops) {
    if (!hop.stored_rows.empty() && hop.stored_rows.size() != stored.size()) {
      return Bad("a hop stores rows, but not their check rows");
    }
  }
  return absl::OkStatus();
}

// Where a helper stores: all stored rows become blocks, and whole ones, but for check rows.
absl::Status CheckStores(const RepairPart& part) {
  if (part.stores.empty()) return absl::OkStatus();
  std::set<Row> brought = StoredRows(part);
  std::set<Row> wanted;
  for (const StoredBlock& block : part.stores) {
    if (block.block_id.empty()) return Bad("a block to be stored has no id");
    if (block.row % part.layout.sub_blocks != 0) {
      return Bad("a block to be stored does not begin at the row of its first sub-block");
    }
    for (uint32_t i = 0; i < part.layout.sub_blocks; ++i) {
      const auto row = static_cast<Row>(block.row + i);
      if (!wanted.insert(row).second) return Bad("a row is to be stored twice");
    }
    if (part.grid.offset != 0 || !part.layout.Fits(block.bytes) ||
        part.grid.bytes != block.bytes / part.layout.sub_blocks) {
      return Bad("a block is to be stored, but the range does not cover all its bytes");
    }
  }
  for (uint32_t i = 0; i < part.check.rows; ++i) brought.erase(std::prev(brought.end()));
  if (brought != wanted) {
    return Bad("the rows that the hops store differ from the rows of the blocks to be stored");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidatePart(const RepairPart& part) {
  ECPIPE_RETURN_IF_ERROR(part.grid.Validate());
  ECPIPE_RETURN_IF_ERROR(part.layout.Validate());
  if (part.hops.empty()) return Bad("the part has no hops");
  if (part.hops.size() > kMaxPartHops) return Bad("the part has too many hops");
  std::set<EdgeId> inputs;
  std::set<EdgeId> outputs;
  std::set<std::pair<uint32_t, uint32_t>> hops;
  for (const HopSpec& hop : part.hops) {
    const std::string where =
        "lane " + std::to_string(hop.lane) + " hop " + std::to_string(hop.hop);
    ECPIPE_RETURN_IF_ERROR(Annotate(CheckHop(hop, part), where));
    if (!hops.insert({hop.lane, hop.hop}).second) return Bad(where + " is in the part twice");
    for (const HopInput& input : hop.inputs) {
      if (!inputs.insert(input.edge).second) return Bad(where + ": an edge is used twice");
    }
    for (const HopOutput& output : hop.outputs) {
      if (!outputs.insert(output.edge).second) return Bad(where + ": an edge is used twice");
    }
  }
  if (part.probe && (!part.stores.empty() || part.transport != TransportKind::kTcp)) {
    return Bad("a probe must store nothing and must use transport tcp");
  }
  ECPIPE_RETURN_IF_ERROR(CheckParity(part));
  if (part.sha256.size() > kMaxRows) return Bad("the part has checksums for too many blocks");
  for (const std::string& sha256 : part.sha256) {
    if (!sha256.empty() && !IsSha256Hex(sha256)) return Bad("a checksum is not a SHA-256");
  }
  return CheckStores(part);
}

// ---- Plans ----------------------------------------------------------------------------------

namespace {

absl::Status CheckPlanHop(const PlanLane& lane, size_t index, const RepairPlan& plan) {
  const PlanHop& hop = lane.hops[index];
  if (hop.node.empty()) return Bad("the hop has no node");
  ECPIPE_RETURN_IF_ERROR(CheckRows(hop.rows, "the hop"));
  if (hop.rows.back() >= plan.rows()) {
    return Bad("the hop has a row that belongs to no failed block");
  }
  if (hop.block_index >= 0) {
    ECPIPE_RETURN_IF_ERROR(
        CheckColumns(hop.sub_blocks, hop.coefficients, hop.rows.size(), plan.layout));
  } else if (!hop.coefficients.empty()) {
    return Bad("the hop has coefficients but no block");
  }
  if (hop.block_index < 0 && hop.inputs.empty()) {
    return Bad("the hop has neither a block nor an input");
  }
  if (hop.inputs.size() > kMaxHopInputs) return Bad("the hop has too many inputs");
  for (const PlanInput& input : hop.inputs) {
    if (input.from_hop < 0 || static_cast<size_t>(input.from_hop) >= index) {
      return Bad("an input comes from a hop that is not before this one");
    }
    ECPIPE_RETURN_IF_ERROR(CheckInputRows(input.rows, input.coefficients, hop.rows));
    if (!Contains(lane.hops[static_cast<size_t>(input.from_hop)].rows, input.rows)) {
      return Bad("an input brings a row that its sender does not accumulate");
    }
  }
  if (!Contains(hop.rows, hop.stored_rows)) {
    return Bad("a stored row is not among the rows that the hop accumulates");
  }
  return absl::OkStatus();
}

// Every failed block stored once, every hop's rows used, no block read twice. A node that has two
// blocks of the stripe may help with both.
absl::Status CheckLane(const PlanLane& lane, const RepairPlan& plan) {
  std::vector<bool> used(lane.hops.size(), false);
  std::vector<int> stored(plan.rows(), 0);
  std::set<int> blocks;
  for (size_t i = 0; i < lane.hops.size(); ++i) {
    const PlanHop& hop = lane.hops[i];
    ECPIPE_RETURN_IF_ERROR(Annotate(CheckPlanHop(lane, i, plan), "hop " + std::to_string(i)));
    for (const PlanInput& input : hop.inputs) used[static_cast<size_t>(input.from_hop)] = true;
    for (const Row row : hop.stored_rows) ++stored[row];
    used[i] = !hop.stored_rows.empty();
    if (hop.block_index >= 0 && !blocks.insert(hop.block_index).second) {
      return Bad("block " + std::to_string(hop.block_index) + " is read twice");
    }
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) {
    return Bad("a hop's rows go nowhere");
  }
  if (std::any_of(stored.begin(), stored.end(), [](int times) { return times != 1; })) {
    return Bad("a failed block is not stored exactly once");
  }
  return absl::OkStatus();
}

// Together the lanes carry every slice at most once; a first attempt carries all, a later one those
// that are missing.
absl::Status CheckSlicesDisjoint(const RepairPlan& plan) {
  std::vector<bool> seen(plan.grid.slice_count(), false);
  for (const PlanLane& lane : plan.lanes) {
    for (const SliceRun& run : lane.slices.runs()) {
      for (uint32_t i = 0; i < run.count; ++i) {
        const uint32_t slice_index = run.first + i * run.stride;
        if (slice_index >= seen.size() || seen[slice_index]) {
          return Bad("slice " + std::to_string(slice_index) +
                     " is carried twice, or does not exist");
        }
        seen[slice_index] = true;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const RepairPlan& plan) {
  ECPIPE_RETURN_IF_ERROR(plan.grid.Validate());
  ECPIPE_RETURN_IF_ERROR(plan.layout.Validate());
  if (plan.failed.empty() || plan.rows() > kMaxRows) {
    return Bad("the plan must have from 1 to " + std::to_string(kMaxRows) +
               " rows of failed blocks");
  }
  if (plan.lanes.empty() || plan.lanes.size() > kMaxLanes) {
    return Bad("the plan must have from 1 to " + std::to_string(kMaxLanes) + " lanes");
  }
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    ECPIPE_RETURN_IF_ERROR(Annotate(CheckLane(plan.lanes[i], plan), "lane " + std::to_string(i)));
  }
  // One lane with one run cannot overlap itself: the common case costs nothing.
  const bool trivial = plan.lanes.size() == 1 && plan.lanes[0].slices.runs().size() == 1;
  return trivial ? absl::OkStatus() : CheckSlicesDisjoint(plan);
}

}  // namespace

absl::Status ValidatePlan(const RepairPlan& plan) {
  const absl::Status status = CheckPlan(plan);
  if (status.ok()) return status;
  return absl::InternalError("the planner for " + plan.scheme +
                             " wrote a bad plan, which is a bug: " + std::string(status.message()));
}

}  // namespace ecpipe

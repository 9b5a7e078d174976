// SPDX-License-Identifier: Apache-2.0
// Another attempt of a repair brings what the attempts before it have not.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/repair_plan.h"

namespace ecpipe {

// What a repair still lacks: some of the slices of its grid, as ascending runs of neighbours.
struct SlicesLeft {
  SliceGrid grid;
  std::vector<SliceRun> missing;

  // INVALID_ARGUMENT unless the grid is valid, there are runs, each of neighbours, apart and
  // ascending, within the grid.
  [[nodiscard]] absl::Status Validate() const;
  // Of one row.
  uint64_t bytes() const;
};

// Leaves in the plan only the slices that are missing, each on the lane that it was on. INTERNAL:
// the plan has another grid.
[[nodiscard]] absl::Status KeepMissing(const SlicesLeft& left, RepairPlan* plan);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// The slices that a further attempt of a repair has to bring.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// What a repair still lacks: some of the slices of its grid, as ascending runs of neighbours.
struct SlicesLeft {
  SliceGrid grid;
  std::vector<SliceRun> missing;

  // INVALID_ARGUMENT unless the grid is valid and there is at least one run. All runs must have a
  // stride of 1, be ascending and apart, and lie within the grid.
  [[nodiscard]] absl::Status Validate() const;
  // Of one row.
  uint64_t bytes() const;
};

// Has the plan bring the missing slices alone. Lanes divide them in the ratio of the slices that
// they had, some of each lane in turn; what an earlier attempt's slow lane left behind may be
// neighbours of nobody, so it is not for the lane that would have had these slices. INTERNAL: the
// plan has another grid.
[[nodiscard]] absl::Status KeepMissing(const SlicesLeft& left, RepairPlan* plan);

}  // namespace ecpipe

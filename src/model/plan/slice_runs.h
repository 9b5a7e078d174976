// SPDX-License-Identifier: Apache-2.0
// The slices that an attempt has left missing, as runs with a stride of 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/plan/slice_grid.h"

namespace ecpipe {

// Bounds the message that names missing slices. Usually one run is missing, and a few slices around
// the places that the lanes have reached; if there are more separate runs than this, some are
// joined.
inline constexpr size_t kMaxMissingRuns = 256;

// The slices of which rows are still to come (a count that is not zero), as ascending runs. To keep
// to kMaxMissingRuns runs, a run may also name slices that are not missing.
std::vector<SliceRun> MissingRuns(std::span<const uint8_t> rows_left);

// All slices of either, both ascending runs of neighbours; bounded in the same way.
std::vector<SliceRun> JoinRuns(const std::vector<SliceRun>& a, const std::vector<SliceRun>& b);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// Slices that an attempt has left missing, as runs of neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/slice_grid.h"

namespace ecpipe {

// It bounds a message. What is missing are one run, and a few slices around the places where lanes
// have come to; beyond this many separate runs all is named as one.
inline constexpr size_t kMaxMissingRuns = 256;

// The slices whose count of rows that are still to come is not zero, ascending; at most
// kMaxMissingRuns runs, which then have some others between them.
std::vector<SliceRun> MissingRuns(std::span<const uint8_t> rows_left);

// All slices of either, both ascending runs of neighbours; bounded in the same way.
std::vector<SliceRun> JoinRuns(const std::vector<SliceRun>& a, const std::vector<SliceRun>& b);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// From rates to whole slices.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planning/trees/tree_packing.h"

namespace ecpipe {

// The slices of each tree, slice_count in all; some may be 0. In the ratio of the rates, rounded,
// and then slice by slice moved off the limit that is busy longest as long as that helps.
std::vector<uint32_t> WholeSlices(const FlowNetwork& network, const std::vector<PackedTree>& trees,
                                  uint32_t slice_count);

}  // namespace ecpipe

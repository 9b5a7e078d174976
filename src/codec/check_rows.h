// SPDX-License-Identifier: Apache-2.0
// Check rows: sums over the blocks that a repair reads which are zero if all of them are what the
// code made them, so that a corrupt one is found without checksums. One more survivor than
// the repair needs gives one such sum.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "codec/erasure_code.h"
#include "common/repair_plan.h"

namespace ecpipe {

// Adds `count` check rows (1 to kMaxCheckRows) to an equation that the code made of `survivors`,
// and terms for the survivors that they need besides. Each block that the equation reads has a
// coefficient in the check rows, and with two rows no two blocks' columns are proportional.
//
// FAILED_PRECONDITION: there are too few survivors. INVALID_ARGUMENT: the code has no such sums
// over these survivors, or cuts blocks into sub-blocks, for which this is not there.
absl::Status AddCheckRows(const ErasureCode& code, std::span<const int> survivors, uint32_t count,
                          RepairEquation* equation);

// Which block is corrupt, from the sums of two check rows at some bytes: the index of the only
// column to which all of them are proportional. Nothing: none is, so more than one block is
// corrupt, or the sums leave a choice.
//
// `columns` are the two check coefficients of each block; the sums are equally long, and not all
// zero.
std::optional<size_t> LocateCorrupt(std::span<const std::vector<uint8_t>> columns,
                                    std::span<const uint8_t> first_sum,
                                    std::span<const uint8_t> second_sum);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// Check rows: sums over the blocks that a repair reads. They are zero if all these blocks are as
// the code made them, so a repair finds a corrupt block without checksums. Each survivor beyond
// those that the repair needs gives one such sum.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "codec/erasure_code.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// Adds `count` check rows (1 to kMaxCheckRows) to an equation that the code made from `survivors`,
// and terms for the further survivors that the check rows need. Each block that the equation reads
// then has a coefficient in the check rows, and with two rows no two columns are proportional.
//
// FAILED_PRECONDITION: there are too few survivors. INVALID_ARGUMENT: the code has no such sums
// over these survivors, or it cuts blocks into sub-blocks, which check rows do not support.
absl::Status AddCheckRows(const ErasureCode& code, std::span<const int> survivors, uint32_t count,
                          RepairEquation* equation);

// Finds the corrupt block from the sums of two check rows: returns the index of the only column to
// which all sums are proportional. Returns nothing if there is no such column, because more than
// one block is corrupt, or if there are several.
//
// `columns` are the two check coefficients of each block; the sums are equally long, and not all
// zero.
std::optional<size_t> LocateCorrupt(std::span<const std::vector<uint8_t>> columns,
                                    std::span<const uint8_t> first_sum,
                                    std::span<const uint8_t> second_sum);

}  // namespace ecpipe

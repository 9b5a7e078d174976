// SPDX-License-Identifier: Apache-2.0
// How large a world of the exhaustive search is, who is in it, and what a broken promise looks
// like.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/repair.h"

namespace ecpipe::search {

inline constexpr RepairId kRepair = 1;
inline const std::vector<std::string> kHelpers = {"h1", "h2", "h3"};
inline const std::vector<std::string> kHosts = {"s", "t"};

enum class Part { kRuns, kDone, kFailed, kKept };
using PartId = std::pair<std::string, uint32_t>;  // node and attempt

struct Broken {
  std::string promise;
};
inline void Promise(bool kept, const char* promise) {
  if (!kept) throw Broken{promise};
}

struct Limits {
  int hosts = 0;  // of blocks b0, b1; none: a requestor takes b0
  int faults = 0;
  int ticks = 0;          // the clock moves
  int checks = 0;         // somebody wants to know how the attempt comes on
  size_t helpers = 2;     // of three, that a plan needs
  uint32_t attempts = 2;  // for which there is a plan
};

}  // namespace ecpipe::search

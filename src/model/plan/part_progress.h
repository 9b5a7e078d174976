// SPDX-License-Identifier: Apache-2.0
// How far a part of a repair has come, as the node that runs it sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/plan/slice_grid.h"

namespace ecpipe {

// One stream of a hop.
struct StreamProgress {
  std::string node;            // the node at the other end
  uint64_t bytes = 0;          // on the network, with frame headers
  bool waiting = false;        // this end waits only for the other end
  double network_seconds = 0;  // for a sender: as in LinkTiming, so far
};

struct HopProgress {
  uint32_t lane = 0;
  uint32_t hop = 0;
  bool waits_for_disk = false;
  std::vector<StreamProgress> inputs;  // streams that have not ended
  std::vector<StreamProgress> outputs;
};

struct PartProgress {
  bool running = false;
  absl::Status
      ended;  // how the part ended, with the node at fault (fault.h); valid if it does not run
  std::vector<HopProgress> hops;
  // The slices that the part's blocks lack, as ascending runs with a stride of 1. Set if the part
  // failed and its blocks are kept for another attempt.
  std::optional<std::vector<SliceRun>> missing = std::nullopt;
  // What each block lacks that a running part stores.
  uint64_t missing_bytes = 0;
};

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// How far a part of a repair has come, as the node that runs it sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/slice_grid.h"

namespace ecpipe {

// One stream of a hop.
struct StreamProgress {
  std::string node;            // at its other end
  uint64_t bytes = 0;          // on the network, with frame headers
  bool waiting = false;        // this end could go on at once if the other one did
  double network_seconds = 0;  // of a sender: as in LinkTiming, so far
};

struct HopProgress {
  uint32_t lane = 0;
  uint32_t hop = 0;
  bool waits_for_disk = false;
  std::vector<StreamProgress> inputs;  // those that have not ended
  std::vector<StreamProgress> outputs;
};

struct PartProgress {
  bool running = false;
  absl::Status ended;  // once it does not run: how it ended, with the blame (blame.h)
  std::vector<HopProgress> hops;
  // Of a part that failed and whose blocks are kept for another attempt: the slices that they lack,
  // as ascending runs of neighbours.
  std::optional<std::vector<SliceRun>> missing = std::nullopt;
  // Of a part that runs and stores blocks: what each of them lacks.
  uint64_t missing_bytes = 0;
};

}  // namespace ecpipe

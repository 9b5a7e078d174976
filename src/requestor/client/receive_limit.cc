// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/receive_limit.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ecpipe {

absl::Status CheckReceiveLimit(const RepairPart& part, double bytes_per_second,
                               Duration stall_timeout) {
  if (bytes_per_second == 0) return absl::OkStatus();
  size_t streams = 0;
  for (const HopSpec& hop : part.hops) streams += hop.inputs.size();
  const auto slice_bytes = std::min<uint64_t>(part.grid.slice_bytes, part.grid.bytes);
  const double round_bytes = static_cast<double>(streams) * static_cast<double>(slice_bytes);
  const double most_bytes = bytes_per_second * Seconds(stall_timeout) / 2;
  if (round_bytes <= most_bytes) return absl::OkStatus();
  const auto mbit = [](double bytes) { return std::to_string(std::llround(bytes * 8 / 1e6)); };
  return absl::InvalidArgumentError(
      "slices of " + std::to_string(slice_bytes) + " bytes from " + std::to_string(streams) +
      " streams at once are too large for a limit of " + mbit(bytes_per_second) +
      " Mbit/s: helpers would take this requestor for dead while they wait; ask for slices of at "
      "most " +
      std::to_string(static_cast<uint64_t>(most_bytes / static_cast<double>(streams))) +
      " bytes (--slice-size), or set a higher limit");
}

}  // namespace ecpipe

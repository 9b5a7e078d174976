// SPDX-License-Identifier: Apache-2.0
#include "requestor/limits/limits_text.h"

#include "absl/strings/str_format.h"

namespace ecpipe {
namespace {

const char* Origin(bool set) { return set ? "set" : "as configured"; }

}  // namespace

std::string RateText(double bytes_per_second) {
  return bytes_per_second == 0 ? "none" : absl::StrFormat("%.1f", Mbit(bytes_per_second));
}

std::string ClusterLimitsText(const ClusterLimitsView& limits) {
  return absl::StrFormat("repair Mb/s %s (%s), repairs at once %d (%s)",
                         RateText(limits.repair_bytes_per_second), Origin(limits.rate_is_set),
                         limits.max_running, Origin(limits.max_running_is_set));
}

std::string RecoveryLimitsText(const ClusterLimitsView& limits, const RecoveryView& recovery) {
  std::string text = "cluster " + ClusterLimitsText(limits);
  if (recovery.streams_per_node == 0) return text;
  const bool own = recovery.record.request.streams_per_node != 0;
  return text +
         absl::StrFormat("; at one node %d (%s)", recovery.streams_per_node,
                         own ? "--streams of this recovery" : "streams_per_node in [recovery]");
}

}  // namespace ecpipe

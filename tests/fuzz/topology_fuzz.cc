// SPDX-License-Identifier: Apache-2.0
// What an operator writes down of racks and links, and what a topology script prints.
#include <cmath>
#include <string>

#include "base/bytes/utf8_text.h"
#include "base/check.h"
#include "coordinator/cluster/topology.h"
#include "coordinator/cluster/topology_script.h"
#include "model/plan/slice_grid.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto racks = ecpipe::ParseRackTable(text, "fuzz"); racks.ok()) {
    for (const auto& [node, rack] : *racks) {
      ECPIPE_CHECK(!node.empty() && !rack.empty());
      // They travel in protos and stand in logs.
      ECPIPE_CHECK(ecpipe::IsCleanText(node) && ecpipe::IsCleanText(rack));
    }
  } else {
    ECPIPE_CHECK(absl::IsInvalidArgument(racks.status()));
  }
  if (const auto links = ecpipe::ParseLinkTable(text, "fuzz"); links.ok()) {
    for (const auto& [pair, bytes_per_second] : *links) {
      ECPIPE_CHECK(ecpipe::IsCleanText(pair.first) && ecpipe::IsCleanText(pair.second));
      ECPIPE_CHECK(std::isfinite(bytes_per_second) && bytes_per_second > 0);
      // The planner divides by it.
      ECPIPE_CHECK(std::isfinite(static_cast<double>(ecpipe::kMaxBlockBytes) / bytes_per_second));
    }
  } else {
    ECPIPE_CHECK(absl::IsInvalidArgument(links.status()));
  }
  for (const size_t hosts : {1, 3}) {
    const auto racks_of_hosts = ecpipe::RacksOfOutput(text, hosts);
    if (!racks_of_hosts.ok()) {
      ECPIPE_CHECK(absl::IsInvalidArgument(racks_of_hosts.status()));
      continue;
    }
    ECPIPE_CHECK(racks_of_hosts->size() == hosts);
    for (const std::string& rack : *racks_of_hosts) {
      ECPIPE_CHECK(rack.size() > 1 && rack.front() == '/' && ecpipe::IsCleanText(rack));
      ECPIPE_CHECK(rack.find(' ') == std::string::npos && text.find(rack) != std::string::npos);
    }
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// What an attempt has brought to the nodes that store its blocks (its hosts), and what is left
// there when it fails. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/repairs/diagnosis.h"
#include "coordinator/repairs/helper_gateway.h"
#include "model/plan/slice_grid.h"

namespace ecpipe {

struct HostedLeft {
  std::vector<std::string> stored;  // hosts that have stored their block in spite of the failure
  std::vector<SliceRun> missing;    // slices that any other host lacks; not empty if there is one
  absl::Status fault;               // a host cannot go on, so no further attempt is possible
};

// `answers` come from the hosts, after their parts were told to end and to keep their slices.
// `grid` is the grid of the attempt.
HostedLeft LeftOnHosts(const PartAnswers& answers, const SliceGrid& grid);

struct ComingToHosts {
  // Bytes received on the streams of the hosts. Nothing if a host does not answer that: it may wait
  // for its disk, or be at its end, and then cannot end its part for another attempt.
  std::optional<uint64_t> bytes;
  bool waiting = false;        // a host waits for bytes of another node
  uint64_t missing_bytes = 0;  // what each block lacks at the host that lacks the most
};
// For an attempt that runs. `answers` may include other nodes.
ComingToHosts WhatComesToHosts(const PartAnswers& answers, const std::vector<HelperAddress>& hosts);

}  // namespace ecpipe

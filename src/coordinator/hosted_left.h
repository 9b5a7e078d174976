// SPDX-License-Identifier: Apache-2.0
// What an attempt brings to the nodes that store its blocks, and has left there when it fails.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/slice_grid.h"
#include "coordinator/diagnosis.h"
#include "coordinator/helper_gateway.h"

namespace ecpipe {

struct HostedLeft {
  std::vector<std::string> stored;  // hosts that have stored their block all the same
  std::vector<SliceRun> missing;  // in any of the other hosts' blocks; not empty if there are some
  absl::Status fault;             // why no attempt can go on: a host that cannot
};

// `answers` are of the hosts, after their parts were told to end and to keep what they have. `grid`
// is that of the attempt.
HostedLeft LeftOnHosts(const PartAnswers& answers, const SliceGrid& grid);

struct ComingToHosts {
  // On their streams; nothing if one of them does not tell: it may be with its disk, or at its end,
  // and cannot end its part now for another attempt.
  std::optional<uint64_t> bytes;
  bool waiting = false;        // one of them, for bytes of another node
  uint64_t missing_bytes = 0;  // of each block, at the host that lacks the most
};
// While the attempt runs. `answers` may be of others, too.
ComingToHosts WhatComesToHosts(const PartAnswers& answers, const std::vector<HelperAddress>& hosts);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// What an attempt brings to the nodes that store its blocks, and has left there when it fails.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/slice_grid.h"
#include "coordinator/diagnosis.h"

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
  uint64_t bytes = 0;          // on their streams
  bool waiting = false;        // one of them, for bytes of another node
  uint64_t missing_bytes = 0;  // of each block, at the host that lacks the most
};
// While the attempt runs.
ComingToHosts WhatComesToHosts(const PartAnswers& answers);

}  // namespace ecpipe

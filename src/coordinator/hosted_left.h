// SPDX-License-Identifier: Apache-2.0
// What a failed attempt has left on the nodes that store its blocks. Pure.
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

}  // namespace ecpipe

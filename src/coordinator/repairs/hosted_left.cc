// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/hosted_left.h"

#include <algorithm>

#include "base/status.h"
#include "model/fault.h"
#include "model/plan/slice_runs.h"

namespace ecpipe {
namespace {

// Why this host cannot go on; OK if it can.
absl::Status WhyStopped(const absl::StatusOr<PartProgress>& answer) {
  if (!answer.ok()) return answer.status();
  if (answer->running) return absl::DeadlineExceededError("its part is still running");
  if (answer->missing && FaultOf(answer->ended) != kFaultSelf) return absl::OkStatus();
  return answer->ended;
}

}  // namespace

HostedLeft LeftOnHosts(const PartAnswers& answers, const SliceGrid& grid) {
  HostedLeft left;
  bool all_there = true;
  for (const auto& [node, answer] : answers) {
    if (answer.ok() && !answer->running && answer->ended.ok()) {
      left.stored.push_back(node);
      continue;
    }
    all_there = false;
    if (absl::Status fault = WhyStopped(answer); !fault.ok()) {
      if (left.fault.ok()) left.fault = Annotate(fault, "node " + node);
      continue;
    }
    left.missing = JoinRuns(left.missing, *answer->missing);
  }
  // A part that has all and failed for another reason stores its block when it ends well.
  if (!all_there && left.missing.empty()) left.missing = {{grid.slice_count() - 1, 1, 1}};
  return left;
}

ComingToHosts WhatComesToHosts(const PartAnswers& answers,
                               const std::vector<HelperAddress>& hosts) {
  ComingToHosts coming;
  uint64_t bytes = 0;
  for (const HelperAddress& host : hosts) {
    const absl::StatusOr<PartProgress>& answer = answers.at(host.node);
    if (!answer.ok() || !answer->running || answer->hops.empty()) return {};
    coming.missing_bytes = std::max(coming.missing_bytes, answer->missing_bytes);
    for (const HopProgress& hop : answer->hops) {
      for (const StreamProgress& input : hop.inputs) {
        bytes += input.bytes;
        coming.waiting |= input.waiting;
      }
    }
  }
  coming.bytes = bytes;
  return coming;
}

}  // namespace ecpipe

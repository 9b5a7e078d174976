// SPDX-License-Identifier: Apache-2.0
// How fast the parts of a repair go, from what its helpers have told at two times. Pure: time is
// handed in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/repairs/diagnosis.h"
#include "coordinator/repairs/tracker.h"

namespace ecpipe {

// What the helpers of an attempt told when they were asked.
struct PipelineLook {
  TimePoint at;
  uint32_t attempt = 0;
  Sent sent;                      // of streams that have not ended
  std::set<std::string> on_disk;  // nodes with a hop that waits for its disk
};
PipelineLook LookOf(const PartAnswers& answers, uint32_t attempt, TimePoint at);

// All streams of an attempt from one node to another.
struct PipelineLink {
  std::string from;
  std::string to;
  uint32_t streams = 0;
  std::optional<double> bytes_per_second;  // none: its sender has not told, or all streams ended
  double network_share = 0;                // of the time in which only the network held it up
};
// The rate of a stream is the one since `before`, if that is a look at the same attempt and has the
// stream; otherwise, and with null, the one since the attempt `began`.
std::vector<PipelineLink> LinksOf(const Receivers& receivers, const PipelineLook* before,
                                  const PipelineLook& now, TimePoint began);

// What keeps a pipeline from being faster.
struct HeldBack {
  enum class By { kLink, kLimit, kDisk };
  By by = By::kLink;
  std::string from;  // the node; of a link, its sender
  std::string to;    // of a link, its receiver
};
// "link", "limit", "disk".
const char* HeldBackName(HeldBack::By by);
// `sending`: what each node sends for all repairs, in bytes per second. `limits`: how much it may;
// 0, or no entry: no limit. Nothing: nothing stands out.
std::optional<HeldBack> WhatHoldsBack(const std::vector<PipelineLink>& links,
                                      const PipelineLook& now,
                                      const std::map<std::string, double>& sending,
                                      const std::map<std::string, double>& limits);

// How fast a repair comes forward.
class ProgressHistory {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(15);

  void Add(const RunningRepair& repair);
  // Of each block, in bytes per second, over the window or since the attempt began; none: nobody
  // has told of the attempt yet. It stays while nobody tells more.
  std::optional<double> Rate() const;

 private:
  struct Mark {
    TimePoint at;
    uint64_t missing_bytes = 0;
  };
  uint32_t attempt_ = 0;
  std::deque<Mark> marks_;  // as told: at most one a look
};

}  // namespace ecpipe

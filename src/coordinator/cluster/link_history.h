// SPDX-License-Identifier: Apache-2.0
// Measured speeds of links between nodes, as exponentially weighted means. Pure: the time is an
// argument. docs/design/005-link-speeds.md has the reasons.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "coordinator/cluster/cluster_view.h"

namespace ecpipe {

struct LinkEstimate {
  std::string from;  // node ids
  std::string to;
  double bytes_per_second = 0;
  uint64_t samples = 0;  // measurements, without lower bounds
  TimePoint last;        // of the latest measurement
};

// The part of the history that planners see.
struct SpeedTable {
  struct Node {
    int links_up = 0;  // links out of the node that were measured
    int links_down = 0;
    double up_bytes_per_second = 0;  // the fastest of them; the node's own link is at least as fast
    double down_bytes_per_second = 0;
  };
  LinkTable pairs;
  std::map<std::string, Node> nodes;
};

class LinkHistory {
 public:
  static constexpr double kWeight = 0.3;  // weight of a measurement soon after the one before
  static constexpr Duration kHalfLife = std::chrono::minutes(10);
  static constexpr Duration kForgotten = std::chrono::hours(24);
  static constexpr size_t kMaxPairs = 250'000;  // 500 nodes, each with each

  // Speeds that are not above 0 or not finite are ignored, and new pairs beyond kMaxPairs.
  void Measured(const std::string& from, const std::string& to, double bytes_per_second,
                TimePoint now);
  // The link has carried this much; it may be faster.
  void AtLeast(const std::string& from, const std::string& to, double bytes_per_second);
  void Forget(TimePoint now);

  std::vector<LinkEstimate> All() const;
  SpeedTable Table() const;

 private:
  struct Mean {
    double bytes_per_second = 0;
    uint64_t samples = 0;
    TimePoint last;
  };
  std::map<std::pair<std::string, std::string>, Mean> means_;
};

}  // namespace ecpipe

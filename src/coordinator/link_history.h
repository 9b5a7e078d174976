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

#include "common/clock.h"
#include "coordinator/cluster_view.h"

namespace ecpipe {

struct LinkEstimate {
  std::string from;  // node ids
  std::string to;
  double bytes_per_second = 0;
  uint64_t samples = 0;  // measurements, without lower bounds
  TimePoint last;        // of the latest measurement
};

// What planners see of it.
struct SpeedTable {
  struct Node {
    int links_up = 0;  // measured, out of the node
    int links_down = 0;
    double up_bytes_per_second = 0;  // of the fastest of them: the node's own link is no slower
    double down_bytes_per_second = 0;
  };
  LinkTable pairs;
  std::map<std::string, Node> nodes;
};

class LinkHistory {
 public:
  static constexpr double kWeight = 0.3;  // of a measurement that follows closely
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

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
  // What all streams have together: out of the node `from` (`to` is empty), into the node `to`
  // (`from` is empty), or from the rack `from` to the rack `to`.
  bool shared = false;
};

// The part of the history that planners see.
struct SpeedTable {
  enum class Sharing {
    kUnknown,
    kShared,  // two streams had about what one had: the node's link is what limits them
    kFree,    // they had the sum: the node's link is faster
  };
  struct Node {
    int links_up = 0;  // links out of the node that were measured
    int links_down = 0;
    double up_bytes_per_second = 0;  // the fastest of them; the node's own link is at least as fast
    double down_bytes_per_second = 0;
    // Whether two streams at once were compared with each of them alone.
    Sharing up_sharing = Sharing::kUnknown;
    Sharing down_sharing = Sharing::kUnknown;
  };
  LinkTable pairs;
  LinkTable racks;  // what all streams from one rack to another share
  std::map<std::string, Node> nodes;
};

class LinkHistory {
 public:
  static constexpr double kWeight = 0.3;  // weight of a measurement soon after the one before
  static constexpr Duration kHalfLife = std::chrono::minutes(10);
  static constexpr Duration kForgotten = std::chrono::hours(24);
  static constexpr size_t kMaxPairs = 250'000;  // 500 nodes, each with each; some 50 MB

  // Keeps so many pairs, and as many limits; for more, those that were measured the longest ago
  // make room, a tenth at a time.
  explicit LinkHistory(size_t max_pairs = kMaxPairs) : max_pairs_(max_pairs) {}

  // Speeds that are not above 0 or not finite are ignored.
  void Measured(const std::string& from, const std::string& to, double bytes_per_second,
                TimePoint now);
  // The link has carried this much; it may be faster.
  void AtLeast(const std::string& from, const std::string& to, double bytes_per_second);
  // What streams at once had together, and what each of them has alone. `key` is as in a shared
  // LinkEstimate.
  void Together(const std::pair<std::string, std::string>& key, double bytes_per_second,
                double alone_bytes_per_second, TimePoint now);
  void Forget(TimePoint now);

  // 0: not known.
  double SpeedOf(const std::string& from, const std::string& to) const;
  std::vector<LinkEstimate> All() const;
  SpeedTable Table() const;

 private:
  struct Mean {
    double bytes_per_second = 0;
    uint64_t samples = 0;
    TimePoint last;

    void Take(double measured, TimePoint now);
  };
  struct Limit {
    Mean mean;
    bool shared = false;  // otherwise `mean` is the most that was seen
  };
  using Pair = std::pair<std::string, std::string>;

  size_t max_pairs_;
  std::map<Pair, Mean> means_;
  std::map<Pair, Limit> limits_;
};

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// The weighted path of §4.3: which helpers, in which order, so that the slowest link of the path is
// as fast as can be. Pure, and knows nothing of blocks or codes.
//
// The paper's Algorithm 2 extends paths link by link and cuts off what is no better than the best
// path so far. Here the speed is searched instead: for a speed t, links slower than t are taken
// away, and what is left has a path or has not; a binary search over the speeds that occur needs
// few such questions. A question is answered by depth-first search from the requestor backwards,
// cut off by what cannot be reached, by counting (a matching of senders to receivers) and by dead
// ends met before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ecpipe {

// speed(i, j) of the link from candidate i to candidate j; j == candidates(): to the requestor.
class LinkSpeeds {
 public:
  static constexpr int kMaxCandidates = 255;

  explicit LinkSpeeds(int candidates)
      : candidates_(candidates),
        speeds_(static_cast<size_t>(candidates) * (static_cast<size_t>(candidates) + 1), 0) {}

  int candidates() const { return candidates_; }
  int requestor() const { return candidates_; }
  double at(int from, int to) const { return speeds_[Index(from, to)]; }
  void Set(int from, int to, double speed) { speeds_[Index(from, to)] = speed; }

 private:
  size_t Index(int from, int to) const {
    return static_cast<size_t>(from) * (static_cast<size_t>(candidates_) + 1) +
           static_cast<size_t>(to);
  }

  int candidates_;
  std::vector<double> speeds_;
};

// The rule that a path visits each rack only once (§4.2). The requestor's own rack can only come
// last, and does not count.
struct RackRule {
  std::vector<int> rack_of;  // of each candidate, from 0 on
  int home = -1;             // the requestor's rack; -1: none of these
  int most_remote = 0;       // racks other than home that the path may visit
};

// The fewest racks other than home that `length` candidates lie in. Requires length <= candidates.
int FewestRemoteRacks(const RackRule& rule, int length);

struct WidestPath {
  std::vector<int> helpers;  // the first sender first; the last one sends to the requestor
  double speed = 0;          // of its slowest link
  // No path of this length is faster. Equal to `speed` when the search ended by itself; larger when
  // it was cut off, and then (bound - speed) is the gap.
  double bound = 0;
  uint64_t steps = 0;  // nodes of the search tree
};

inline constexpr uint64_t kDefaultPathSteps = 200'000;

// A path of `length` different candidates, 1 <= length <= candidates() <= kMaxCandidates; all links
// exist, so there always is one. After about `max_steps` steps the best path so far is returned.
// Deterministic. Random speeds, on average: (14, 10) takes 56
// steps and 21 µs, (16, 12) 40 µs, (40, 30) 4 ms; (100, 80) is cut off after 65 ms, 2.3 % below the
// bound.
WidestPath FindWidestPath(const LinkSpeeds& speeds, int length,
                          uint64_t max_steps = kDefaultPathSteps);

// The same among the paths that keep the rule. Requires rule.most_remote >= FewestRemoteRacks().
WidestPath FindWidestPath(const LinkSpeeds& speeds, const RackRule& rule, int length,
                          uint64_t max_steps = kDefaultPathSteps);

}  // namespace ecpipe

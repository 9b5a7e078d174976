// SPDX-License-Identifier: Apache-2.0
// The links that a repair can use, and the trees that it can use them by. Numbers, no names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ecpipe {

// Helpers are 0 to helpers - 1, and the requestor is `helpers`. Every arc from a helper to another
// node exists; it uses some limits, each of which other arcs may use as well: the sender's uplink,
// the receiver's downlink, the pair's own speed, what racks share.
class FlowNetwork {
 public:
  // Uplink, downlink, pair, out of a rack, into a rack, from rack to rack.
  static constexpr size_t kMaxLimitsOfArc = 6;

  // Every slice needs `needed` of the helpers. 1 <= needed <= helpers <= 255, as a stripe has no
  // more blocks.
  FlowNetwork(int helpers, int needed)
      : helpers_(helpers),
        needed_(needed),
        arcs_(static_cast<size_t>(helpers) * (static_cast<size_t>(helpers) + 1)) {}

  int helpers() const { return helpers_; }
  int needed() const { return needed_; }
  int requestor() const { return helpers_; }

  // Speeds are above 0, in blocks or bytes per second. Returns the limit's number.
  size_t AddLimit(double speed) {
    limits_.push_back(speed);
    return limits_.size() - 1;
  }
  // At most kMaxLimitsOfArc of an arc.
  void Use(int from, int to, size_t limit) {
    Arc& arc = arcs_[Index(from, to)];
    arc.limits[arc.count++] = static_cast<uint32_t>(limit);
  }

  // Has trees enter the requestor by one helper, for where nothing is known of its downlink.
  void LetOneHelperEnter() { one_enters_ = true; }
  bool one_enters() const { return one_enters_; }

  const std::vector<double>& limits() const { return limits_; }
  std::span<const uint32_t> LimitsOf(int from, int to) const {
    const Arc& arc = arcs_[Index(from, to)];
    return {arc.limits.data(), arc.count};
  }

 private:
  struct Arc {
    std::array<uint32_t, kMaxLimitsOfArc> limits{};
    uint32_t count = 0;
  };
  size_t Index(int from, int to) const {
    return static_cast<size_t>(from) * (static_cast<size_t>(helpers_) + 1) +
           static_cast<size_t>(to);
  }

  int helpers_;
  int needed_;
  bool one_enters_ = false;
  std::vector<double> limits_;
  std::vector<Arc> arcs_;
};

// An in-tree of `needed` helpers: each sends to one other node of the tree, in the end all to the
// requestor.
struct InTree {
  static constexpr int kOutside = -1;

  std::vector<int> parent;  // of each helper; kOutside: it does not take part

  friend bool operator==(const InTree&, const InTree&) = default;
};

// How often a tree uses a limit.
struct LimitUse {
  uint32_t limit = 0;
  uint32_t times = 0;
};

// The limits that the tree uses, each once.
std::vector<LimitUse> UsesOf(const FlowNetwork& network, const InTree& tree);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/whole_slices.h"

#include <algorithm>

namespace ecpipe {
namespace {

std::vector<uint32_t> LargestRemainders(const std::vector<PackedTree>& trees,
                                        uint32_t slice_count) {
  double rate = 0;
  for (const PackedTree& tree : trees) rate += tree.rate;
  std::vector<uint32_t> counts;
  std::vector<std::pair<double, size_t>> fractions;  // the largest first, since it is negative
  uint32_t missing = slice_count;
  for (size_t i = 0; i < trees.size(); ++i) {
    const double exact = trees[i].rate / rate * slice_count;
    const uint32_t whole = std::min(missing, static_cast<uint32_t>(exact));
    counts.push_back(whole);
    fractions.push_back({whole - exact, i});
    missing -= whole;
  }
  std::sort(fractions.begin(), fractions.end());
  for (size_t i = 0; missing > 0; i = (i + 1) % trees.size(), --missing) {
    ++counts[fractions[i].second];
  }
  return counts;
}

class Balance {
 public:
  Balance(const FlowNetwork& network, const std::vector<PackedTree>& trees,
          std::vector<uint32_t> counts)
      : limits_(network.limits()), counts_(std::move(counts)), load_(limits_.size(), 0) {
    for (const PackedTree& tree : trees) uses_.push_back(UsesOf(network, tree.tree));
    for (size_t i = 0; i < uses_.size(); ++i) Add(i, counts_[i]);
  }

  // Moves one slice from a tree that uses the busiest limit to the tree that is then best off.
  bool MoveOne() {
    const size_t busiest = Busiest();
    const double before = TimeOf(busiest);
    size_t from = uses_.size();
    size_t to = uses_.size();
    double best = before * (1 - 1e-9);
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (counts_[i] == 0 || UsesOfLimit(i, busiest) == 0) continue;
      Add(i, -1);
      for (size_t other = 0; other < uses_.size(); ++other) {
        if (other == i || UsesOfLimit(other, busiest) >= UsesOfLimit(i, busiest)) continue;
        const double after = std::max(TimeWith(other), TimeOf(busiest));
        if (after >= best) continue;
        best = after;
        from = i;
        to = other;
      }
      Add(i, 1);
    }
    if (from == uses_.size()) return false;
    Add(from, -1);
    --counts_[from];
    Add(to, 1);
    ++counts_[to];
    return true;
  }

  std::vector<uint32_t> Take() { return std::move(counts_); }

 private:
  void Add(size_t tree, double slices) {
    for (const LimitUse& use : uses_[tree]) load_[use.limit] += slices * use.times;
  }
  double TimeOf(size_t limit) const { return load_[limit] / limits_[limit]; }
  size_t Busiest() const {
    size_t busiest = 0;
    for (size_t i = 1; i < limits_.size(); ++i) {
      if (TimeOf(i) > TimeOf(busiest)) busiest = i;
    }
    return busiest;
  }
  // Of the limits of the tree, with one more slice on it.
  double TimeWith(size_t tree) const {
    double time = 0;
    for (const LimitUse& use : uses_[tree]) {
      time = std::max(time, (load_[use.limit] + use.times) / limits_[use.limit]);
    }
    return time;
  }
  uint32_t UsesOfLimit(size_t tree, size_t limit) const {
    for (const LimitUse& use : uses_[tree]) {
      if (use.limit == limit) return use.times;
    }
    return 0;
  }

  const std::vector<double>& limits_;
  std::vector<uint32_t> counts_;
  std::vector<std::vector<LimitUse>> uses_;
  std::vector<double> load_;  // slices that cross each limit
};

}  // namespace

std::vector<uint32_t> WholeSlices(const FlowNetwork& network, const std::vector<PackedTree>& trees,
                                  uint32_t slice_count) {
  Balance balance(network, trees, LargestRemainders(trees, slice_count));
  // Rounding moves less than one slice a tree.
  for (size_t move = 0; move < trees.size() && balance.MoveOne(); ++move) {
  }
  return balance.Take();
}

}  // namespace ecpipe

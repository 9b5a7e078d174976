// SPDX-License-Identifier: Apache-2.0
// The linear program of a packing, with the columns that have been found so far:
//
//   maximise   sum over trees of rate
//   such that  for each limit: sum over trees of (times used) * rate <= speed of the limit
//
// The primal simplex method by a working basis: there are hundreds or thousands of limits, but only
// as many trees carry anything as limits are full, a few dozen. So only the square matrix of these
// trees and these limits is inverted, and the free capacity of the others is carried along.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planning/trees/flow_network.h"

namespace ecpipe {

class PackingProgram {
 public:
  // Speeds are above 0. They are made a little unequal, by less than a 10,000th, because the method
  // stands still where many limits are full at once.
  explicit PackingProgram(const std::vector<double>& limits);

  // A tree that carries something: what Offer() called it, and its rate, which is 0 or more.
  struct Carrier {
    uint32_t id = 0;
    double rate = 0;
  };

  // Takes the tree into the packing if that makes it faster, and makes the packing the best one of
  // the trees that are in it. Returns whether it did.
  bool Offer(const std::vector<LimitUse>& uses, uint32_t id);

  // What a little more of each limit would gain: 0 for those that are not full. A tree whose uses
  // cost less than 1 by these prices makes the packing faster.
  const std::vector<double>& prices() const { return prices_; }
  double rate() const;
  std::vector<Carrier> carriers() const;
  // About the number of elementary steps of all calls.
  uint64_t steps() const { return steps_; }

 private:
  struct Column {
    uint32_t id = 0;
    std::vector<LimitUse> uses;
    double rate = 0;
  };
  // What the ratio test found: the first variable that reaches 0.
  struct Leaving {
    double ratio = 0;
    int column = -1;  // index into columns_, or
    int limit = -1;   // a limit that becomes full
  };

  double UsesOfLimit(const Column& column, uint32_t limit) const;
  // The change of each limit's free capacity for one unit of the variable that enters.
  void FindChanges(const std::vector<LimitUse>& entering);
  Leaving FirstToReachZero() const;
  void Move(double step);
  void AddColumn(const std::vector<LimitUse>& uses, uint32_t id, const Leaving& leaving);
  void FreeLimit(size_t place, const Leaving& leaving);
  void ReplaceColumn(size_t column);
  std::vector<double> RowOf(int limit) const;
  void Border(int limit);
  void ReplaceRow(size_t place, int limit);
  void RemovePair(size_t column, size_t place);
  void FindPrices();
  // False: the basis is singular, as far as numbers tell. Rates stay as they are.
  bool Refactor();
  double& Inverse(size_t column, size_t place) { return inverse_[column * stride_ + place]; }
  double Inverse(size_t column, size_t place) const { return inverse_[column * stride_ + place]; }
  void Reserve(size_t size);

  std::vector<double> limits_;
  std::vector<double> free_;     // what is left of each limit
  std::vector<double> prices_;   // of each limit
  std::vector<Column> columns_;  // the trees that carry
  std::vector<uint32_t> full_;   // the limits that are full, as many as there are columns
  std::vector<int> place_;       // of each limit in full_; -1: it is not full
  std::vector<double> inverse_;  // a row for each column, a column for each full limit
  size_t stride_ = 0;
  std::vector<double> column_change_;  // what one unit of the entering variable takes off
  std::vector<double> limit_change_;
  uint64_t steps_ = 0;
  uint32_t changes_ = 0;  // of the basis, since Refactor()
  bool stuck_ = false;    // numbers are too bad to go on; the packing stays as it is
};

}  // namespace ecpipe

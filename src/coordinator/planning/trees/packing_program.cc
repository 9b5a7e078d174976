// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/packing_program.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace ecpipe {
namespace {

constexpr double kLeastPivot = 1e-9;
// Below this a basis counts as singular: rounding errors have eaten it up.
constexpr double kSingular = 1e-12;
constexpr double kLeastReducedCost = 1e-7;
// Rounding errors grow with every change of the inverse.
constexpr uint32_t kChangesBeforeRefactor = 64;
// More are seldom of use: the next tree changes the prices anyhow.
constexpr int kMostPivotsOfOffer = 20;

}  // namespace

PackingProgram::PackingProgram(const std::vector<double>& limits)
    : limits_(limits), prices_(limits.size(), 0), place_(limits.size(), -1) {
  std::minstd_rand random(1);
  for (double& limit : limits_) limit *= 1 - 1e-4 * static_cast<double>(random() % 10'000) / 1e4;
  free_ = limits_;
  limit_change_.assign(limits_.size(), 0);
  Reserve(32);
}

void PackingProgram::Reserve(size_t size) {
  if (size <= stride_) return;
  std::vector<double> old = std::move(inverse_);
  const size_t old_stride = stride_;
  stride_ = 2 * size;
  inverse_.assign(stride_ * stride_, 0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    std::copy_n(&old[i * old_stride], full_.size(), &inverse_[i * stride_]);
  }
}

double PackingProgram::rate() const {
  double sum = 0;
  for (const Column& column : columns_) sum += std::max(0.0, column.rate);
  return sum;
}

std::vector<PackingProgram::Carrier> PackingProgram::carriers() const {
  std::vector<Carrier> carriers;
  for (const Column& column : columns_) carriers.push_back({column.id, std::max(0.0, column.rate)});
  return carriers;
}

double PackingProgram::UsesOfLimit(const Column& column, uint32_t limit) const {
  for (const LimitUse& use : column.uses) {
    if (use.limit == limit) return use.times;
  }
  return 0;
}

// column_change_ is set before.
void PackingProgram::FindChanges(const std::vector<LimitUse>& entering) {
  std::fill(limit_change_.begin(), limit_change_.end(), 0);
  for (const LimitUse& use : entering) limit_change_[use.limit] = use.times;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (column_change_[i] == 0) continue;
    for (const LimitUse& use : columns_[i].uses) {
      limit_change_[use.limit] -= column_change_[i] * use.times;
    }
    steps_ += columns_[i].uses.size();
  }
  for (const uint32_t limit : full_) limit_change_[limit] = 0;
  steps_ += limit_change_.size();
}

PackingProgram::Leaving PackingProgram::FirstToReachZero() const {
  Leaving first;
  double change = 0;
  const auto consider = [&](double left, double by, int column, int limit) {
    if (by < kLeastPivot) return;
    const double ratio = std::max(0.0, left) / by;
    const bool none = first.column < 0 && first.limit < 0;
    if (!none && (ratio > first.ratio || (ratio == first.ratio && by <= change))) return;
    first = {ratio, column, limit};
    change = by;
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    consider(columns_[i].rate, column_change_[i], static_cast<int>(i), -1);
  }
  for (size_t i = 0; i < free_.size(); ++i) {
    if (limit_change_[i] > 0) consider(free_[i], limit_change_[i], -1, static_cast<int>(i));
  }
  return first;
}

void PackingProgram::Move(double step) {
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].rate -= step * column_change_[i];
  for (size_t i = 0; i < free_.size(); ++i) free_[i] -= step * limit_change_[i];
}

void PackingProgram::ReplaceColumn(size_t column) {
  const double pivot = column_change_[column];
  for (size_t q = 0; q < full_.size(); ++q) Inverse(column, q) /= pivot;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i == column || column_change_[i] == 0) continue;
    for (size_t q = 0; q < full_.size(); ++q) {
      Inverse(i, q) -= column_change_[i] * Inverse(column, q);
    }
  }
}

// What the columns use of a limit, times the inverse.
std::vector<double> PackingProgram::RowOf(int limit) const {
  const size_t size = columns_.size();
  std::vector<double> row(size, 0);
  for (size_t i = 0; i < size; ++i) {
    const double uses = UsesOfLimit(columns_[i], static_cast<uint32_t>(limit));
    if (uses == 0) continue;
    for (size_t q = 0; q < size; ++q) row[q] += uses * Inverse(i, q);
  }
  return row;
}

// The inverse with one more column, whose changes are column_change_, and one more full limit.
void PackingProgram::Border(int limit) {
  const size_t size = columns_.size();
  Reserve(size + 1);
  const double pivot = limit_change_[static_cast<size_t>(limit)];
  const std::vector<double> row = RowOf(limit);
  for (size_t i = 0; i < size; ++i) {
    for (size_t q = 0; q < size; ++q) Inverse(i, q) += column_change_[i] * row[q] / pivot;
    Inverse(i, size) = -column_change_[i] / pivot;
  }
  for (size_t q = 0; q < size; ++q) Inverse(size, q) = -row[q] / pivot;
  Inverse(size, size) = 1 / pivot;
}

// The full limit at `place` becomes free, and `limit` full.
void PackingProgram::ReplaceRow(size_t place, int limit) {
  const size_t size = columns_.size();
  const std::vector<double> row = RowOf(limit);
  for (size_t i = 0; i < size; ++i) {
    const double scaled = Inverse(i, place) / row[place];
    for (size_t q = 0; q < size; ++q) Inverse(i, q) -= row[q] * scaled;
    Inverse(i, place) = scaled;
  }
}

// The inverse without this column and this full limit.
void PackingProgram::RemovePair(size_t column, size_t place) {
  const size_t size = columns_.size();
  const double pivot = Inverse(column, place);
  for (size_t i = 0; i < size; ++i) {
    if (i == column) continue;
    const double by = Inverse(i, place) / pivot;
    if (by == 0) continue;
    for (size_t q = 0; q < size; ++q) Inverse(i, q) -= by * Inverse(column, q);
  }
  const size_t last = size - 1;
  for (size_t q = 0; q < size; ++q) Inverse(column, q) = Inverse(last, q);
  for (size_t i = 0; i < last; ++i) Inverse(i, place) = Inverse(i, last);
  std::swap(columns_[column], columns_[last]);
  columns_.pop_back();
  place_[full_[place]] = -1;
  full_[place] = full_[last];
  if (place != last) place_[full_[place]] = static_cast<int>(place);
  full_.pop_back();
}

void PackingProgram::AddColumn(const std::vector<LimitUse>& uses, uint32_t id,
                               const Leaving& leaving) {
  Column column{id, uses, leaving.ratio};
  if (leaving.column >= 0) {
    ReplaceColumn(static_cast<size_t>(leaving.column));
    columns_[static_cast<size_t>(leaving.column)] = std::move(column);
    return;
  }
  Border(leaving.limit);
  place_[static_cast<size_t>(leaving.limit)] = static_cast<int>(full_.size());
  full_.push_back(static_cast<uint32_t>(leaving.limit));
  free_[static_cast<size_t>(leaving.limit)] = 0;
  columns_.push_back(std::move(column));
}

void PackingProgram::FreeLimit(size_t place, const Leaving& leaving) {
  free_[full_[place]] = leaving.ratio;
  if (leaving.column >= 0) {
    RemovePair(static_cast<size_t>(leaving.column), place);
    return;
  }
  ReplaceRow(place, leaving.limit);
  place_[full_[place]] = -1;
  full_[place] = static_cast<uint32_t>(leaving.limit);
  place_[full_[place]] = static_cast<int>(place);
  free_[full_[place]] = 0;
}

void PackingProgram::FindPrices() {
  if (++changes_ >= kChangesBeforeRefactor && !Refactor()) {
    stuck_ = true;
    return;
  }
  std::vector<double> sums(full_.size(), 0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    for (size_t q = 0; q < full_.size(); ++q) sums[q] += Inverse(i, q);
  }
  std::fill(prices_.begin(), prices_.end(), 0);
  for (size_t q = 0; q < full_.size(); ++q) prices_[full_[q]] = sums[q];
  steps_ += 2 * columns_.size() * columns_.size() + prices_.size();
}

// The inverse anew by Gauss and Jordan, and from it the rates and what is left of limits.
bool PackingProgram::Refactor() {
  changes_ = 0;
  const size_t size = columns_.size();
  std::vector<double> matrix(size * size, 0);  // a row for each full limit
  std::fill(inverse_.begin(), inverse_.end(), 0);
  for (size_t i = 0; i < size; ++i) {
    for (const LimitUse& use : columns_[i].uses) {
      const int place = place_[use.limit];
      if (place >= 0) matrix[static_cast<size_t>(place) * size + i] = use.times;
    }
    Inverse(i, i) = 1;
  }
  // Rows of `inverse_` follow those of `matrix`, and end in the order of the columns.
  for (size_t i = 0; i < size; ++i) {
    size_t best = i;
    for (size_t q = i + 1; q < size; ++q) {
      if (std::abs(matrix[q * size + i]) > std::abs(matrix[best * size + i])) best = q;
    }
    const double pivot = matrix[best * size + i];
    if (std::abs(pivot) < kSingular) return false;
    for (size_t q = 0; q < size; ++q) {
      std::swap(matrix[i * size + q], matrix[best * size + q]);
      std::swap(Inverse(i, q), Inverse(best, q));
    }
    for (size_t q = 0; q < size; ++q) {
      matrix[i * size + q] /= pivot;
      Inverse(i, q) /= pivot;
    }
    for (size_t row = 0; row < size; ++row) {
      const double by = matrix[row * size + i];
      if (row == i || by == 0) continue;
      for (size_t q = 0; q < size; ++q) {
        matrix[row * size + q] -= by * matrix[i * size + q];
        Inverse(row, q) -= by * Inverse(i, q);
      }
    }
  }
  free_ = limits_;
  for (size_t i = 0; i < size; ++i) {
    columns_[i].rate = 0;
    for (size_t q = 0; q < size; ++q) columns_[i].rate += Inverse(i, q) * limits_[full_[q]];
    for (const LimitUse& use : columns_[i].uses) free_[use.limit] -= columns_[i].rate * use.times;
  }
  for (const uint32_t limit : full_) free_[limit] = 0;
  steps_ += 2 * size * size * size;
  return true;
}

bool PackingProgram::Offer(const std::vector<LimitUse>& uses, uint32_t id) {
  if (stuck_) return false;
  double price = 0;
  for (const LimitUse& use : uses) price += prices_[use.limit] * use.times;
  if (price >= 1 - kLeastReducedCost) return false;
  column_change_.assign(columns_.size(), 0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    for (const LimitUse& use : uses) {
      const int place = place_[use.limit];
      if (place >= 0) column_change_[i] += Inverse(i, static_cast<size_t>(place)) * use.times;
    }
  }
  steps_ += columns_.size() * (uses.size() + 1);
  FindChanges(uses);
  const Leaving first = FirstToReachZero();
  if (first.column < 0 && first.limit < 0) return false;
  Move(first.ratio);
  AddColumn(uses, id, first);
  FindPrices();
  // A limit with a price below 0 should not be full.
  for (int pivot = 0; pivot < kMostPivotsOfOffer && !full_.empty() && !stuck_; ++pivot) {
    const auto worst = std::min_element(full_.begin(), full_.end(), [&](uint32_t a, uint32_t b) {
      return prices_[a] < prices_[b];
    });
    if (prices_[*worst] > -kLeastReducedCost * 1e-3) break;
    const auto place = static_cast<size_t>(worst - full_.begin());
    column_change_.assign(columns_.size(), 0);
    for (size_t i = 0; i < columns_.size(); ++i) column_change_[i] = Inverse(i, place);
    FindChanges({});
    const Leaving next = FirstToReachZero();
    if (next.column < 0 && next.limit < 0) break;
    Move(next.ratio);
    FreeLimit(place, next);
    FindPrices();
  }
  for (double& of_limit : prices_) of_limit = std::max(0.0, of_limit);
  return true;
}

}  // namespace ecpipe

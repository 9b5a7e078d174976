// SPDX-License-Identifier: Apache-2.0
#include "codec/linear_code.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codec/gf256.h"

namespace ecpipe {
namespace {

using Vector = std::vector<uint8_t>;

// The target may be longer than the source.
void AddScaled(Vector* target, const Vector& source, uint8_t factor) {
  for (size_t i = 0; i < source.size(); ++i) (*target)[i] ^= GfMultiply(source[i], factor);
}

// A combination of generator rows that is being eliminated.
struct Reduced {
  Vector rest;     // what the rows taken so far cannot make of it
  Vector weights;  // of the taken rows, in what they can
};

bool IsZero(const Vector& row) {
  return std::all_of(row.begin(), row.end(), [](uint8_t cell) { return cell == 0; });
}

// A basis of the span of the rows taken so far. A basis vector is 1 at its pivot, which is its
// first non-zero column, and 0 at the pivots of all before it. It remembers how it is made of the
// taken rows.
class Span {
 public:
  explicit Span(int dimension) : pivots_(static_cast<size_t>(dimension), kNone) {}

  size_t taken() const { return basis_.size(); }

  // False when the row lies in the span already.
  bool Take(const Vector& row) {
    Reduced reduced = Reduce(row);
    const auto pivot = std::find_if(reduced.rest.begin(), reduced.rest.end(),
                                    [](uint8_t cell) { return cell != 0; });
    if (pivot == reduced.rest.end()) return false;
    const auto column = static_cast<size_t>(pivot - reduced.rest.begin());
    const uint8_t scale = GfInverse(*pivot);
    reduced.weights.push_back(1);  // the new row itself
    for (uint8_t& cell : reduced.rest) cell = GfMultiply(cell, scale);
    for (uint8_t& weight : reduced.weights) weight = GfMultiply(weight, scale);
    pivots_[column] = basis_.size();
    basis_.push_back({std::move(reduced.rest), std::move(reduced.weights), column});
    return true;
  }

  // Brings a target that was reduced before the last Take() up to date. One step is enough, as
  // the newest basis vector is 0 at all earlier pivots.
  void ReduceByNewest(Reduced* target) const {
    const Basis& newest = basis_.back();
    target->weights.resize(taken(), 0);
    if (const uint8_t factor = target->rest[newest.pivot]; factor != 0) {
      AddScaled(&target->rest, newest.row, factor);
      AddScaled(&target->weights, newest.weights, factor);
    }
  }

 private:
  struct Basis {
    Vector row;
    Vector weights;  // of the rows taken up to it
    size_t pivot;
  };
  static constexpr size_t kNone = SIZE_MAX;

  // From the first column on: a basis vector touches only columns from its pivot on.
  Reduced Reduce(const Vector& row) const {
    Reduced reduced{row, Vector(taken(), 0)};
    for (size_t column = 0; column < row.size(); ++column) {
      const uint8_t factor = reduced.rest[column];
      if (factor == 0 || pivots_[column] == kNone) continue;
      AddScaled(&reduced.rest, basis_[pivots_[column]].row, factor);
      AddScaled(&reduced.weights, basis_[pivots_[column]].weights, factor);
    }
    return reduced;
  }

  std::vector<Basis> basis_;
  std::vector<size_t> pivots_;  // basis index by column
};

Vector RowOf(const Matrix& matrix, int row) {
  Vector cells(static_cast<size_t>(matrix.columns()));
  for (int j = 0; j < matrix.columns(); ++j) cells[static_cast<size_t>(j)] = matrix.at(row, j);
  return cells;
}

// Columns of one block come one after the other.
void AddColumn(int block_index, int sub_block, const Vector& column, RepairEquation* equation) {
  if (equation->terms.empty() || equation->terms.back().block_index != block_index) {
    equation->terms.push_back({block_index, {}, {}});
  }
  EquationTerm& term = equation->terms.back();
  term.sub_blocks.push_back(static_cast<uint32_t>(sub_block));
  term.coefficients.insert(term.coefficients.end(), column.begin(), column.end());
}

}  // namespace

absl::Status LinearCode::CheckIndices(std::span<const int> failed,
                                      std::span<const int> survivors) const {
  if (failed.empty()) return absl::InvalidArgumentError("no failed block is named");
  std::vector<bool> seen(static_cast<size_t>(n()), false);
  for (const std::span<const int> list : {failed, survivors}) {
    for (const int index : list) {
      if (index < 0 || index >= n()) {
        return absl::InvalidArgumentError("block index " + std::to_string(index) +
                                          " is not in the range 0 to " + std::to_string(n() - 1));
      }
      if (seen[static_cast<size_t>(index)]) {
        return absl::InvalidArgumentError("block index " + std::to_string(index) +
                                          " is named twice");
      }
      seen[static_cast<size_t>(index)] = true;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RepairEquation> LinearCode::Equation(std::span<const int> failed,
                                                    std::span<const int> survivors) const {
  ECPIPE_RETURN_IF_ERROR(CheckIndices(failed, survivors));
  const int subs = sub_blocks();
  std::vector<Reduced> targets;
  for (const int index : failed) {
    for (int a = 0; a < subs; ++a) targets.push_back({RowOf(generator_, index * subs + a), {}});
  }
  const auto solved = [&] {
    return std::all_of(targets.begin(), targets.end(),
                       [](const Reduced& target) { return IsZero(target.rest); });
  };
  Span span(generator_.columns());
  std::vector<int> taken;  // rows of the generator
  for (const int index : survivors) {
    if (solved()) break;
    for (int row = index * subs; row < (index + 1) * subs; ++row) {
      if (!span.Take(RowOf(generator_, row))) continue;
      taken.push_back(row);
      for (Reduced& target : targets) span.ReduceByNewest(&target);
    }
  }
  if (!solved()) {
    return absl::FailedPreconditionError(
        std::to_string(survivors.size()) + " survivors are not enough to rebuild " +
        std::to_string(failed.size()) + " failed block" + (failed.size() == 1 ? "" : "s") + "; " +
        name_ + " needs up to " + std::to_string(k()) + " independent survivors, but only " +
        std::to_string(static_cast<int>(taken.size()) / subs) + " were found");
  }
  RepairEquation equation;
  equation.layout = layout_;
  equation.failed.assign(failed.begin(), failed.end());
  for (size_t t = 0; t < taken.size(); ++t) {
    Vector column;
    for (const Reduced& target : targets) column.push_back(target.weights[t]);
    if (!IsZero(column)) AddColumn(taken[t] / subs, taken[t] % subs, column, &equation);
  }
  return equation;
}

}  // namespace ecpipe

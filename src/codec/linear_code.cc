// SPDX-License-Identifier: Apache-2.0
#include "codec/linear_code.h"

#include <algorithm>
#include <vector>

#include "codec/gf256.h"
#include "common/status.h"

namespace ecpipe {
namespace {

using Vector = std::vector<uint8_t>;

void AddScaled(Vector* target, const Vector& source, uint8_t factor) {
  for (size_t i = 0; i < target->size(); ++i) (*target)[i] ^= GfMultiply(source[i], factor);
}

// A basis of the span of the rows taken so far, in echelon form. Each basis vector remembers how it
// is made of the taken rows.
class Span {
 public:
  explicit Span(int dimension) : pivots_(static_cast<size_t>(dimension), -1) {}

  struct Reduced {
    Vector rest;     // what the span cannot make
    Vector weights;  // of the taken rows, in what it can
  };

  Reduced Reduce(Vector row) const {
    Vector weights(taken_, 0);
    for (size_t column = 0; column < row.size(); ++column) {
      if (row[column] == 0 || pivots_[column] < 0) continue;
      const Basis& basis = basis_[static_cast<size_t>(pivots_[column])];
      const uint8_t factor = row[column];  // basis vectors have a 1 at their pivot
      AddScaled(&row, basis.row, factor);
      for (size_t i = 0; i < basis.weights.size(); ++i) {
        weights[i] ^= GfMultiply(basis.weights[i], factor);
      }
    }
    return {std::move(row), std::move(weights)};
  }

  // False when the row lies in the span already.
  bool Take(const Vector& row) {
    Reduced reduced = Reduce(row);
    const auto pivot = std::find_if(reduced.rest.begin(), reduced.rest.end(),
                                    [](uint8_t cell) { return cell != 0; });
    if (pivot == reduced.rest.end()) return false;
    const uint8_t scale = GfInverse(*pivot);
    reduced.weights.push_back(1);  // the new row itself
    for (uint8_t& cell : reduced.rest) cell = GfMultiply(cell, scale);
    for (uint8_t& weight : reduced.weights) weight = GfMultiply(weight, scale);
    const auto column = static_cast<size_t>(
        std::find_if(reduced.rest.begin(), reduced.rest.end(), [](uint8_t c) { return c != 0; }) -
        reduced.rest.begin());
    pivots_[column] = static_cast<int>(basis_.size());
    basis_.push_back({std::move(reduced.rest), std::move(reduced.weights)});
    ++taken_;
    return true;
  }

 private:
  struct Basis {
    Vector row;
    Vector weights;
  };
  std::vector<Basis> basis_;
  std::vector<int> pivots_;  // basis index by column; -1: none
  size_t taken_ = 0;
};

bool IsZero(const Vector& row) {
  return std::all_of(row.begin(), row.end(), [](uint8_t cell) { return cell == 0; });
}

Vector RowOf(const Matrix& matrix, int row) {
  Vector cells(static_cast<size_t>(matrix.columns()));
  for (int j = 0; j < matrix.columns(); ++j) cells[static_cast<size_t>(j)] = matrix.at(row, j);
  return cells;
}

}  // namespace

absl::Status LinearCode::CheckIndices(std::span<const int> failed,
                                      std::span<const int> survivors) const {
  if (failed.empty()) return absl::InvalidArgumentError("no failed block was named");
  std::vector<bool> seen(static_cast<size_t>(n()), false);
  for (const std::span<const int> list : {failed, survivors}) {
    for (const int index : list) {
      if (index < 0 || index >= n()) {
        return absl::InvalidArgumentError("block index " + std::to_string(index) +
                                          " is not from 0 to " + std::to_string(n() - 1));
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
  Span span(k());
  std::vector<int> taken;
  std::vector<Span::Reduced> targets;
  const auto reduce_targets = [&] {
    targets.clear();
    for (const int index : failed) targets.push_back(span.Reduce(RowOf(generator_, index)));
    return std::all_of(targets.begin(), targets.end(),
                       [](const Span::Reduced& target) { return IsZero(target.rest); });
  };
  bool solved = false;
  for (const int index : survivors) {
    if (!span.Take(RowOf(generator_, index))) continue;
    taken.push_back(index);
    solved = reduce_targets();
    if (solved) break;
  }
  if (!solved) {
    return absl::FailedPreconditionError(
        "the " + std::to_string(survivors.size()) + " surviving blocks do not determine the " +
        std::to_string(failed.size()) + " failed ones; " + name_ + " needs up to " +
        std::to_string(k()) + " independent survivors, " + std::to_string(taken.size()) +
        " were found");
  }
  RepairEquation equation;
  equation.failed.assign(failed.begin(), failed.end());
  for (size_t t = 0; t < taken.size(); ++t) {
    EquationTerm term{taken[t], {}};
    for (const Span::Reduced& target : targets) term.coefficients.push_back(target.weights[t]);
    if (!IsZero(term.coefficients)) equation.terms.push_back(std::move(term));
  }
  return equation;
}

}  // namespace ecpipe

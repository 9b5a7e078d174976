// SPDX-License-Identifier: Apache-2.0
#include "codec/rotated_reed_solomon.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "codec/gf256.h"

namespace ecpipe {
namespace {

// Data blocks below this are rotated in parity j.
int Cut(int k, int m, int j) { return k * j / m; }

Matrix Generator(int n, int k, int r) {
  Matrix generator(n * r, k * r);
  for (int row = 0; row < k * r; ++row) generator.at(row, row) = 1;
  uint8_t base = 1;
  for (int j = 0; j < n - k; ++j) {
    uint8_t power = 1;
    for (int i = 0; i < k; ++i) {
      for (int b = 0; b < r; ++b) {
        const int from = i < Cut(k, n - k, j) ? (b + 1) % r : b;
        generator.at((k + j) * r + b, i * r + from) = power;
      }
      power = GfMultiply(power, base);
    }
    base = GfMultiply(base, 2);
  }
  return generator;
}

std::vector<int> Members(uint32_t set) {
  std::vector<int> members;
  for (int i = 0; set != 0; ++i, set >>= 1) {
    if (set & 1) members.push_back(i);
  }
  return members;
}

// Whether the lost data blocks follow from as many parities, the other data being there.
bool Determines(const Matrix& generator, int k, int r, const std::vector<int>& parities,
                const std::vector<int>& lost) {
  const int size = static_cast<int>(lost.size()) * r;
  Matrix minor(size, size);
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      minor.at(row, column) =
          generator.at((k + parities[static_cast<size_t>(row / r)]) * r + row % r,
                       lost[static_cast<size_t>(column / r)] * r + column % r);
    }
  }
  return Invert(minor).has_value();
}

// A systematic code is MDS exactly if every square set of lost data and parities is regular. At
// most C(24, 4) sets of at most 16 x 16, or fewer that are larger.
bool IsMds(const Matrix& generator, int n, int k, int r) {
  for (uint32_t lost = 1; lost < (1u << k); ++lost) {
    if (std::popcount(lost) > n - k) continue;
    for (uint32_t parities = 1; parities < (1u << (n - k)); ++parities) {
      if (std::popcount(parities) != std::popcount(lost)) continue;
      if (!Determines(generator, k, r, Members(parities), Members(lost))) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ErasureCode>> RotatedReedSolomonCode::Create(
    int n, int k, const BlockLayout& layout) {
  const std::string name = "rotated-rs(" + std::to_string(n) + "," + std::to_string(k) + "," +
                           std::to_string(layout.sub_blocks) + "," +
                           std::to_string(layout.unit_bytes) + ")";
  constexpr int kMostSubBlocks = 64;
  constexpr int kMostBlocks = 24;  // IsMds looks at 2^k sets
  ECPIPE_RETURN_IF_ERROR(Annotate(layout.Validate(), name));
  const int r = static_cast<int>(layout.sub_blocks);
  const bool in_range = k >= 2 && n <= kMostBlocks && 2 <= n - k && n - k <= 4 && r % 2 == 0;
  if (!in_range || n * r > kMostSubBlocks) {
    return absl::InvalidArgumentError(name +
                                      " is not a valid code: rotated-rs(n,k,rows,unit) needs 2 to "
                                      "4 parity blocks, k >= 2, n <= 24, an even "
                                      "number of rows, and n * rows <= 64");
  }
  Matrix generator = Generator(n, k, r);
  if (!IsMds(generator, n, k, r)) {
    return absl::InvalidArgumentError(
        name + " is not MDS: some sets of k blocks do not determine the data");
  }
  return std::shared_ptr<const ErasureCode>(
      new RotatedReedSolomonCode(name, std::move(generator), layout));
}

absl::StatusOr<RepairEquation> RotatedReedSolomonCode::Equation(
    std::span<const int> failed, std::span<const int> survivors) const {
  ECPIPE_RETURN_IF_ERROR(CheckIndices(failed, survivors));
  const int partner = failed.size() == 1 ? PartnerOf(failed[0], survivors) : 0;
  if (partner == 0) return LinearCode::Equation(failed, survivors);
  return ByParities(failed[0], partner, survivors);
}

int RotatedReedSolomonCode::PartnerOf(int data, std::span<const int> survivors) const {
  if (data >= k() || !absl::c_linear_search(survivors, k())) return 0;
  for (int i = 0; i < k(); ++i) {
    if (i != data && !absl::c_linear_search(survivors, i)) return 0;
  }
  int best = 0;
  int least = k();
  for (int j = 1; j < n() - k(); ++j) {
    if (!absl::c_linear_search(survivors, k() + j)) continue;
    // What an odd sub-block adds to what the even ones read is the data on its own side of the cut.
    const int cut = Cut(k(), n() - k(), j);
    const int reads = data < cut ? cut : k() - cut;
    if (reads < least) {
      least = reads;
      best = j;
    }
  }
  return best;
}

RepairEquation RotatedReedSolomonCode::ByParities(int data, int partner,
                                                  std::span<const int> survivors) const {
  const int r = sub_blocks();
  const bool rotated = data < Cut(k(), n() - k(), partner);
  // columns.at(row of the generator, row of the equation)
  Matrix columns(n() * r, r);
  for (int row = 0; row < r; ++row) {
    const bool even = row % 2 == 0;
    const int parity = k() + (even ? 0 : partner);
    const int sum = parity * r + (!even && rotated ? row - 1 : row);
    // The parity's sum, solved for the lost sub-block, whose column of it is own.
    const int own = data * r + row;
    const uint8_t scale = GfInverse(generator().at(sum, own));
    for (int column = 0; column < k() * r; ++column) {
      if (column == own) continue;
      columns.at(column, row) = GfMultiply(generator().at(sum, column), scale);
    }
    columns.at(sum, row) = scale;
  }
  RepairEquation equation;
  equation.failed = {data};
  equation.layout = layout();
  for (const int block : survivors) {
    EquationTerm term{block, {}, {}};
    for (int a = 0; a < r; ++a) {
      std::vector<uint8_t> column;
      for (int row = 0; row < r; ++row) column.push_back(columns.at(block * r + a, row));
      if (std::count(column.begin(), column.end(), 0) == r) continue;
      term.sub_blocks.push_back(static_cast<uint32_t>(a));
      term.coefficients.insert(term.coefficients.end(), column.begin(), column.end());
    }
    if (!term.sub_blocks.empty()) equation.terms.push_back(std::move(term));
  }
  return equation;
}

}  // namespace ecpipe

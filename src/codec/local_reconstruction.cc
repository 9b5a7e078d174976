// SPDX-License-Identifier: Apache-2.0
#include "codec/local_reconstruction.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "codec/gf256.h"
#include "codec/reed_solomon.h"

namespace ecpipe {
namespace {

// The paper's coefficients: the global parities are the sums of c_j · block j and of c_j² · block
// j. It asks that the sum of any two coefficients of the one group differs from any of the other:
// here one group's lie in the low four bits and the other's in the high four.
void SetAzureGlobals(int group_size, Matrix* generator) {
  const int k = generator->columns();
  for (int j = 0; j < k; ++j) {
    const int nibble = j % group_size + 1;
    const auto coefficient = static_cast<uint8_t>(j < group_size ? nibble : nibble << 4);
    generator->at(generator->rows() - 2, j) = coefficient;
    generator->at(generator->rows() - 1, j) = GfMultiply(coefficient, coefficient);
  }
}

// Rows 1 .. global of a Cauchy matrix whose columns are scaled so that row 0 is all ones, as the
// local parities are when they are put together.
absl::Status SetMdsGlobals(int global, Matrix* generator) {
  const int k = generator->columns();
  ECPIPE_ASSIGN_OR_RETURN(const Matrix cauchy, CauchyGenerator(k + global + 1, k));
  for (int j = 0; j < k; ++j) {
    const uint8_t scale = GfInverse(cauchy.at(k, j));
    for (int p = 1; p <= global; ++p) {
      generator->at(generator->rows() - global - 1 + p, j) = GfMultiply(cauchy.at(k + p, j), scale);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ErasureCode>> LocalReconstructionCode::Create(int k,
                                                                                   int groups,
                                                                                   int global) {
  const std::string name = "lrc(" + std::to_string(k) + "," + std::to_string(groups) + "," +
                           std::to_string(global) + ")";
  const bool in_range = 1 <= k && k <= 255 && 1 <= groups && groups <= k && 1 <= global &&
                        global <= 255 && k + groups + global <= 255;
  if (!in_range || k % groups != 0) {
    return absl::InvalidArgumentError(
        name +
        " is not a valid code: in lrc(k,groups,global), groups must divide k, with at least one "
        "global parity, and at most 255 blocks in all");
  }
  const int group_size = k / groups;
  Matrix generator(k + groups + global, k);
  for (int j = 0; j < k; ++j) {
    generator.at(j, j) = 1;
    generator.at(k + j / group_size, j) = 1;
  }
  constexpr int kNibbles = 15;
  if (global == 2 && groups <= 2 && group_size <= kNibbles) {
    SetAzureGlobals(group_size, &generator);
  } else {
    ECPIPE_RETURN_IF_ERROR(SetMdsGlobals(global, &generator));
  }
  return std::shared_ptr<const ErasureCode>(
      new LocalReconstructionCode(name, std::move(generator), groups));
}

int LocalReconstructionCode::GroupOf(int block) const {
  if (0 <= block && block < k()) return block / (k() / groups_);
  return k() <= block && block < k() + groups_ ? block - k() : -1;
}

absl::StatusOr<RepairEquation> LocalReconstructionCode::Equation(
    std::span<const int> failed, std::span<const int> survivors) const {
  std::set<int> own_groups;
  for (const int block : failed) own_groups.insert(GroupOf(block));
  own_groups.erase(-1);
  std::vector<int> order(survivors.begin(), survivors.end());
  std::stable_partition(order.begin(), order.end(),
                        [&](int block) { return own_groups.contains(GroupOf(block)); });
  return LinearCode::Equation(failed, order);
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "codec/shortened_code.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace ecpipe {
namespace {

Matrix WithoutColumnsOf(const ErasureCode& code, const std::vector<int>& zero_blocks) {
  const Matrix& whole = code.generator();
  const int subs = static_cast<int>(code.layout().sub_blocks);
  Matrix rest(whole.rows(), whole.columns() - static_cast<int>(zero_blocks.size()) * subs);
  int to = 0;
  for (int from = 0; from < whole.columns(); ++from) {
    if (absl::c_linear_search(zero_blocks, from / subs)) continue;
    for (int row = 0; row < whole.rows(); ++row) rest.at(row, to) = whole.at(row, from);
    ++to;
  }
  return rest;
}

}  // namespace

ShortenedCode::ShortenedCode(std::shared_ptr<const ErasureCode> code, std::vector<int> zero_blocks)
    : code_(std::move(code)),
      zero_blocks_(std::move(zero_blocks)),
      name_(code_->name() + " without blocks " + absl::StrJoin(zero_blocks_, ",")),
      generator_(WithoutColumnsOf(*code_, zero_blocks_)) {}

absl::StatusOr<std::shared_ptr<const ErasureCode>> ShortenedCode::Create(
    std::shared_ptr<const ErasureCode> code, const std::vector<int>& zero_blocks) {
  const std::set<int> distinct(zero_blocks.begin(), zero_blocks.end());
  const bool are_data =
      distinct.empty() || (*distinct.begin() >= 0 && *distinct.rbegin() < code->k());
  const bool some_left = static_cast<int>(distinct.size()) < code->k();
  if (!are_data || !some_left || distinct.size() != zero_blocks.size()) {
    return absl::InvalidArgumentError("the blocks " + absl::StrJoin(zero_blocks, ",") + " of " +
                                      code->name() +
                                      " cannot be taken as zero: each must be a data block, named "
                                      "once, and at least one data block must be left");
  }
  return std::shared_ptr<const ErasureCode>(new ShortenedCode(std::move(code), zero_blocks));
}

bool ShortenedCode::IsZero(int block) const { return absl::c_linear_search(zero_blocks_, block); }

absl::StatusOr<RepairEquation> ShortenedCode::Equation(std::span<const int> failed,
                                                       std::span<const int> survivors) const {
  for (const std::span<const int> list : {failed, survivors}) {
    for (const int block : list) {
      if (!IsZero(block)) continue;
      return absl::InvalidArgumentError("block index " + std::to_string(block) +
                                        " names a block that is all zeros");
    }
  }
  // First, since they cost nothing.
  std::vector<int> known = zero_blocks_;
  known.insert(known.end(), survivors.begin(), survivors.end());
  ECPIPE_ASSIGN_OR_RETURN(RepairEquation equation, code_->Equation(failed, known));
  std::erase_if(equation.terms,
                [this](const EquationTerm& term) { return IsZero(term.block_index); });
  return equation;
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "codec/check_rows.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "base/check.h"
#include "base/status.h"
#include "codec/gf256.h"

namespace ecpipe {
namespace {

bool Reads(const RepairEquation& equation, int block) {
  return std::any_of(equation.terms.begin(), equation.terms.end(),
                     [&](const EquationTerm& term) { return term.block_index == block; });
}

bool Proportional(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return GfMultiply(a[0], b[1]) == GfMultiply(a[1], b[0]);
}

// Says what a survivor is made of: the term coefficients and the survivor itself add up to zero.
class Relations {
 public:
  Relations(const ErasureCode& code, std::span<const int> survivors, const RepairEquation& equation)
      : code_(code), survivors_(survivors) {
    for (const EquationTerm& term : equation.terms) used_.push_back(term.block_index);
  }

  // Finds up to `count`, each over all blocks that the equation reads.
  void Find(uint32_t count) {
    for (const int block : survivors_) {
      if (found_.size() == count) return;
      if (absl::c_linear_search(used_, block)) continue;
      extras_.push_back(block);
      absl::StatusOr<RepairEquation> made = code_.Equation({{block}}, Others());
      const bool covers = made.ok() && std::all_of(used_.begin(), used_.end(),
                                                   [&](int used) { return Reads(*made, used); });
      if (covers && !Uses(found_, block)) {
        made->terms.push_back({block, {1}, {0}});
        found_.push_back(*std::move(made));
      } else {
        extras_.pop_back();
      }
    }
  }

  const std::vector<RepairEquation>& found() const { return found_; }

 private:
  static bool Uses(const std::vector<RepairEquation>& relations, int block) {
    return std::any_of(relations.begin(), relations.end(),
                       [&](const RepairEquation& relation) { return Reads(relation, block); });
  }

  // First the blocks that the equation reads anyway, then data before parities, which leaves the
  // parities for further relations.
  std::vector<int> Others() const {
    std::vector<int> rest;
    for (const int block : survivors_) {
      if (!absl::c_linear_search(used_, block) && !absl::c_linear_search(extras_, block))
        rest.push_back(block);
    }
    std::sort(rest.begin(), rest.end());
    std::vector<int> others = used_;
    others.insert(others.end(), rest.begin(), rest.end());
    return others;
  }

  const ErasureCode& code_;
  const std::span<const int> survivors_;
  std::vector<int> used_;
  std::vector<int> extras_;  // which the relations found so far are of
  std::vector<RepairEquation> found_;
};

EquationTerm& TermOf(int block, size_t rows, RepairEquation* equation) {
  for (EquationTerm& term : equation->terms) {
    if (term.block_index == block) return term;
  }
  return equation->terms.emplace_back(EquationTerm{block, std::vector<uint8_t>(rows, 0), {0}});
}

// Any two blocks can be told apart.
bool Locates(const RepairEquation& equation) {
  const size_t rows = equation.failed.size();
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const auto column = std::span(equation.terms[i].coefficients).subspan(rows);
    for (size_t j = 0; j < i; ++j) {
      if (Proportional(column, std::span(equation.terms[j].coefficients).subspan(rows))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

absl::Status AddCheckRows(const ErasureCode& code, std::span<const int> survivors, uint32_t count,
                          RepairEquation* equation) {
  ECPIPE_CHECK(1 <= count && count <= kMaxCheckRows && equation->check_rows == 0);
  if (code.layout().sub_blocks != 1) {
    return absl::InvalidArgumentError(
        "code " + code.name() +
        " cuts blocks into sub-blocks, so repairs cannot be verified by parity");
  }
  const size_t needed = static_cast<size_t>(code.k()) + count;
  if (survivors.size() < needed) {
    return absl::FailedPreconditionError("verification by parity needs " + std::to_string(needed) +
                                         " survivors, but only " +
                                         std::to_string(survivors.size()) + " can be used");
  }
  Relations relations(code, survivors, *equation);
  relations.Find(count);
  const auto none = [&] {
    return absl::InvalidArgumentError(
        "the usable survivors of " + code.name() + " have no parity " +
        (count == 1 ? "that verifies a repair from them" : "that tells which of them is corrupt"));
  };
  if (relations.found().size() < count) return none();
  RepairEquation checked = *equation;
  const size_t rows = equation->rows() + count;
  for (EquationTerm& term : checked.terms) term.coefficients.resize(rows, 0);
  for (uint32_t i = 0; i < count; ++i) {
    for (const EquationTerm& term : relations.found()[i].terms) {
      TermOf(term.block_index, rows, &checked).coefficients[equation->rows() + i] =
          term.coefficients[0];
    }
  }
  checked.check_rows = count;
  if (count > 1 && !Locates(checked)) return none();
  *equation = std::move(checked);
  return absl::OkStatus();
}

std::optional<size_t> LocateCorrupt(std::span<const std::vector<uint8_t>> columns,
                                    std::span<const uint8_t> first_sum,
                                    std::span<const uint8_t> second_sum) {
  std::optional<size_t> found;
  for (size_t i = 0; i < columns.size(); ++i) {
    bool fits = true;
    for (size_t at = 0; fits && at < first_sum.size(); ++at) {
      const uint8_t sums[] = {first_sum[at], second_sum[at]};
      fits = Proportional(sums, columns[i]);
    }
    if (!fits) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// Names of codes, and the repair equations of those that exist: an equation that is handed out
// rebuilds the lost blocks, checked on the generator.
#include <string>

#include "base/check.h"
#include "codec/erasure_code.h"
#include "codec/gf256.h"
#include "fuzz_input.h"

namespace ecpipe {
namespace {

// Larger ones take too long to solve thousands of times a second.
constexpr int kMostRows = 48;

// Sums the equation's terms as rows of the generator: they must be the failed blocks' own rows.
void CheckRebuilds(const ErasureCode& code, const RepairEquation& equation) {
  const Matrix& generator = code.generator();
  const auto subs = static_cast<int>(code.layout().sub_blocks);
  const size_t rows = equation.rows();
  for (size_t row = 0; row < rows; ++row) {
    const int lost = equation.failed[row / static_cast<size_t>(subs)] * subs +
                     static_cast<int>(row % static_cast<size_t>(subs));
    for (int column = 0; column < generator.columns(); ++column) {
      uint8_t sum = 0;
      for (const EquationTerm& term : equation.terms) {
        for (size_t s = 0; s < term.sub_blocks.size(); ++s) {
          const int read = term.block_index * subs + static_cast<int>(term.sub_blocks[s]);
          sum ^= GfMultiply(term.coefficients[s * rows + row], generator.at(read, column));
        }
      }
      ECPIPE_CHECK(sum == generator.at(lost, column));
    }
  }
}

void CheckCode(const ErasureCode& code, FuzzInput* input) {
  ECPIPE_CHECK(1 <= code.k() && code.k() < code.n() && code.n() <= 255);
  ECPIPE_CHECK(code.layout().Validate().ok());
  const auto again = CreateErasureCode(code.name());
  ECPIPE_CHECK(again.ok() && (*again)->name() == code.name() && (*again)->n() == code.n() &&
               (*again)->k() == code.k());
  if (code.generator().rows() > kMostRows) return;
  std::vector<int> failed;
  std::vector<int> survivors;
  for (int block = 0; block < code.n(); ++block) {
    const auto fate = input->Take<uint8_t>();
    if (fate % 4 == 1) failed.push_back(block);
    if (fate % 4 == 0) survivors.push_back(block);
    if (fate == 255) survivors.push_back(static_cast<int>(input->Take<int8_t>()));
  }
  const auto equation = code.Equation(failed, survivors);
  if (equation.ok()) {
    CheckRebuilds(code, *equation);
  } else {
    ECPIPE_CHECK(absl::IsInvalidArgument(equation.status()) ||
                 absl::IsFailedPrecondition(equation.status()));
  }
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  const auto code = ecpipe::CreateErasureCode(input.Text());
  if (code.ok()) {
    ecpipe::CheckCode(**code, &input);
  } else {
    ECPIPE_CHECK(absl::IsInvalidArgument(code.status()));
  }
  return 0;
}

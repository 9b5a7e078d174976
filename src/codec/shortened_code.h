// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codec/erasure_code.h"

namespace ecpipe {

// A code some of whose data blocks are known to be zero: blocks that a short stripe does not have,
// or that end before the wanted range. A repair does not read them, and needs that many blocks
// fewer.
//
// Blocks keep their indices, and n stays; k counts the data blocks that are not zero, and the
// generator has no columns for the others.
class ShortenedCode : public ErasureCode {
 public:
  // INVALID_ARGUMENT unless `zero_blocks` are data blocks, each named once, and not all of them.
  static absl::StatusOr<std::shared_ptr<const ErasureCode>> Create(
      std::shared_ptr<const ErasureCode> code, const std::vector<int>& zero_blocks);

  int n() const override { return code_->n(); }
  int k() const override { return code_->k() - static_cast<int>(zero_blocks_.size()); }
  // The name of the whole code, followed by the zero blocks. CreateErasureCode does not take it.
  const std::string& name() const override { return name_; }
  BlockLayout layout() const override { return code_->layout(); }
  const Matrix& generator() const override { return generator_; }

  // INVALID_ARGUMENT if a zero block is among `failed` or `survivors`. The other errors are those
  // of the whole code.
  absl::StatusOr<RepairEquation> Equation(std::span<const int> failed,
                                          std::span<const int> survivors) const override;

 private:
  ShortenedCode(std::shared_ptr<const ErasureCode> code, std::vector<int> zero_blocks);
  bool IsZero(int block) const;

  const std::shared_ptr<const ErasureCode> code_;  // shared: a cache has it, too
  const std::vector<int> zero_blocks_;
  const std::string name_;
  const Matrix generator_;
};

}  // namespace ecpipe

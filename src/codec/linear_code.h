// SPDX-License-Identifier: Apache-2.0
// Repair equations for any systematic linear code, from its generator alone.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "codec/erasure_code.h"

namespace ecpipe {

// A code family derives from this, or is just a name and a generator, and a layout if it has
// sub-blocks.
class LinearCode : public ErasureCode {
 public:
  // `generator` is as ErasureCode::generator() says.
  LinearCode(std::string name, Matrix generator, const BlockLayout& layout = {})
      : name_(std::move(name)), generator_(std::move(generator)), layout_(layout) {}

  int n() const override { return generator_.rows() / sub_blocks(); }
  int k() const override { return generator_.columns() / sub_blocks(); }
  BlockLayout layout() const override { return layout_; }
  const std::string& name() const override { return name_; }
  const Matrix& generator() const override { return generator_; }

  // Gaussian elimination over the survivors, in their order: a survivor's sub-block is taken when
  // it is independent of those before it, until the failed blocks lie in the span of what was
  // taken.
  absl::StatusOr<RepairEquation> Equation(std::span<const int> failed,
                                          std::span<const int> survivors) const override;

 protected:
  int sub_blocks() const { return static_cast<int>(layout_.sub_blocks); }
  absl::Status CheckIndices(std::span<const int> failed, std::span<const int> survivors) const;

 private:
  const std::string name_;
  const Matrix generator_;
  const BlockLayout layout_;
};

}  // namespace ecpipe

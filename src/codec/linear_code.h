// SPDX-License-Identifier: Apache-2.0
// Repair equations for any systematic linear code, from its generator alone.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "codec/erasure_code.h"

namespace ecpipe {

// A code family derives from this, or is just a name and a generator.
class LinearCode : public ErasureCode {
 public:
  // `generator` has n rows and k columns and begins with the identity.
  LinearCode(std::string name, Matrix generator)
      : name_(std::move(name)), generator_(std::move(generator)) {}

  int n() const override { return generator_.rows(); }
  int k() const override { return generator_.columns(); }
  const std::string& name() const override { return name_; }
  const Matrix& generator() const override { return generator_; }

  // Gaussian elimination over the survivors, in their order: a survivor is taken when it is
  // independent of those before it, until the failed blocks lie in the span of what was taken.
  absl::StatusOr<RepairEquation> Equation(std::span<const int> failed,
                                          std::span<const int> survivors) const override;

 private:
  absl::Status CheckIndices(std::span<const int> failed, std::span<const int> survivors) const;

  const std::string name_;
  const Matrix generator_;
};

}  // namespace ecpipe

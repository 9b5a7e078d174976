// SPDX-License-Identifier: Apache-2.0
// Local reconstruction codes: Huang et al., "Erasure Coding in Windows Azure Storage" (ATC'12).
#pragma once

#include "codec/linear_code.h"

namespace ecpipe {

// k data blocks in `groups` local groups of equal size, each with one local parity (the XOR of its
// data blocks), and `global` parities over all data blocks. The order of the blocks: data, local
// parities, global parities; n = k + groups + global.
//
// Two global parities and at most two groups of at most 15 blocks: the paper's construction, which
// decodes every pattern of failures that any such code could. Otherwise the global parities are
// rows of an MDS matrix, of which the local parities are another, cut up: any global + 1 failures
// decode, and of the larger patterns those that the matrix allows.
class LocalReconstructionCode : public LinearCode {
 public:
  // INVALID_ARGUMENT unless groups >= 1 divides k, global >= 1, and n <= 255.
  static absl::StatusOr<std::shared_ptr<const ErasureCode>> Create(int k, int groups, int global);

  // Prefers the survivors of the failed blocks' own groups: a single failure of a data block or of
  // a local parity is repaired from k / groups blocks.
  absl::StatusOr<RepairEquation> Equation(std::span<const int> failed,
                                          std::span<const int> survivors) const override;

 private:
  LocalReconstructionCode(std::string name, Matrix generator, int groups)
      : LinearCode(std::move(name), std::move(generator)), groups_(groups) {}

  // -1: a global parity, or no block at all.
  int GroupOf(int block) const;

  const int groups_;
};

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// Rotated RS: Khan et al., "Rethinking Erasure Codes for Cloud File Systems" (FAST'12), §5.
#pragma once

#include "codec/linear_code.h"

namespace ecpipe {

// Blocks have r sub-blocks. With m = n - k parities, sub-block b of parity j is
//
//   Σ over i < ⌊kj/m⌋ of 2^(ij) · d(i, (b + 1) mod r)  +  Σ over the other i of 2^(ij) · d(i, b)
//
// where d(i, b) is sub-block b of data block i. Parity 0 is the plain sum. MDS: any k blocks
// determine all.
class RotatedReedSolomonCode : public LinearCode {
 public:
  // `layout` has an even number of sub-blocks. INVALID_ARGUMENT unless 2 <= n - k <= 4, k >= 2 and
  // n times the sub-blocks is at most 64: within these limits every code is checked to be MDS here.
  static absl::StatusOr<std::shared_ptr<const ErasureCode>> Create(int n, int k,
                                                                   const BlockLayout& layout);

  // One data block, with all other data blocks, parity 0 and another parity among the survivors:
  // sub-blocks with even numbers by parity 0, the others by the parity that shares most of what is
  // read, (16,12): 7.5 or 9 blocks' worth. From up to k + 1 blocks. Otherwise as LinearCode, from k
  // blocks, whole.
  absl::StatusOr<RepairEquation> Equation(std::span<const int> failed,
                                          std::span<const int> survivors) const override;

 private:
  RotatedReedSolomonCode(std::string name, Matrix generator, const BlockLayout& layout)
      : LinearCode(std::move(name), std::move(generator), layout) {}

  // Which parity rebuilds the odd sub-blocks of `data`; 0: none among the survivors can.
  int PartnerOf(int data, std::span<const int> survivors) const;
  RepairEquation ByParities(int data, int partner, std::span<const int> survivors) const;
};

}  // namespace ecpipe

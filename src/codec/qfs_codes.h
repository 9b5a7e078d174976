// SPDX-License-Identifier: Apache-2.0
// The codes of QFS's erasure-coded files: Ovsiannikov et al., "The Quantcast File System" (2013);
// the coefficients were read in QFS's encoder and found in chunks of a real cluster. Both are over
// the field of gf256.h, bytewise, at equal offsets of the chunks.
#pragma once

#include "absl/status/statusor.h"
#include "codec/matrix.h"

namespace ecpipe {

// Striper type 2: [I; V] with three rows V[p][j] = (2^p)^j, which are those of
// VandermondeGenerator(k + 3, k). MDS for every k that QFS has. INVALID_ARGUMENT unless
// 1 <= k <= 64 and m = 3.
absl::StatusOr<Matrix> QfsRsGenerator(int k, int m);

// Striper type 3: the systematic Vandermonde matrix that Jerasure makes. Known for (6, 3) alone:
// INVALID_ARGUMENT for others.
absl::StatusOr<Matrix> QfsJerasureGenerator(int k, int m);

}  // namespace ecpipe

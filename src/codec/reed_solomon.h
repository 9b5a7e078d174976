// SPDX-License-Identifier: Apache-2.0
// Reed-Solomon codes: Reed and Solomon, "Polynomial Codes over Certain Finite Fields" (1960), in
// the two systematic forms that storage systems use.
#pragma once

#include "absl/status/statusor.h"
#include "codec/matrix.h"

namespace ecpipe {

// [I; C] with C[p][j] = 1 / ((k + p) XOR j): every square submatrix of a Cauchy matrix is regular,
// so the code is MDS. The same as ISA-L's gf_gen_cauchy1_matrix, and HDFS-3's codec "rs".
// INVALID_ARGUMENT unless 1 <= k < n <= 255.
absl::StatusOr<Matrix> CauchyGenerator(int n, int k);

// [I; V] with V[p][j] = (2^p)^j: the same as ISA-L's gf_gen_rs_matrix; QFS uses (9,6). Not MDS for
// every n and k: INVALID_ARGUMENT then names the parity rows and data columns of a singular
// submatrix, for such a code may lose data with n - k failures. The check is exact and takes up
// to 10 ms.
absl::StatusOr<Matrix> VandermondeGenerator(int n, int k);

// HDFS-3's codec "rs-legacy": the data blocks are the coefficients of d(x), the parities those of
// x^m d(x) mod g(x), where m = n - k and g(x) is the product of (x + 2^i) for i < m. A shortened
// Reed-Solomon code whose generator polynomial has m successive powers of 2 as its roots, so it is
// MDS for every n and k. INVALID_ARGUMENT unless 1 <= k < n <= 255.
absl::StatusOr<Matrix> LegacyGenerator(int n, int k);

// [I; 1 ... 1]: one parity, the XOR of all data; HDFS-3's XOR-2-1 is (3, 2). INVALID_ARGUMENT
// unless n = k + 1 <= 255.
absl::StatusOr<Matrix> XorGenerator(int n, int k);

}  // namespace ecpipe

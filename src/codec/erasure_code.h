// SPDX-License-Identifier: Apache-2.0
// Linear erasure codes over GF(2^8), polynomial 0x11d, as the repair planner sees them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codec/matrix.h"
#include "model/plan/block_layout.h"

namespace ecpipe {

// One block that a repair reads, and what it contributes.
struct EquationTerm {
  int block_index = 0;
  std::vector<uint8_t> coefficients;       // for each of `sub_blocks` in turn, one for each row
  std::vector<uint32_t> sub_blocks = {0};  // those that are read, ascending

  friend bool operator==(const EquationTerm&, const EquationTerm&) = default;
};

// Row i · layout.sub_blocks + a is sub-block a of failed[i]; for most codes, which have one
// sub-block, row i is failed[i]. Byte by byte:
//
//   row r = Σ over terms and their sub-blocks s of  coefficients[s][r] · sub-block s of the block
//
// Additions may be made in any order, which is what lets helpers add their own term in turn.
struct RepairEquation {
  std::vector<int> failed;          // block indices
  std::vector<EquationTerm> terms;  // in the caller's order of preference; no all-zero terms
  BlockLayout layout;
  // The number of check rows, which follow the rows of the failed blocks; see check_rows.h. Codes
  // write none.
  uint32_t check_rows = 0;

  size_t rows() const { return failed.size() * layout.sub_blocks + check_rows; }

  friend bool operator==(const RepairEquation&, const RepairEquation&) = default;
};

// A code with n blocks a stripe of which k are data. Immutable and thread-safe.
class ErasureCode {
 public:
  virtual ~ErasureCode() = default;

  virtual int n() const = 0;
  virtual int k() const = 0;
  // The text that CreateErasureCode takes to make this code again, e.g. "rs-cauchy(14,10)".
  virtual const std::string& name() const = 0;

  // How the code cuts a block into sub-blocks. The length of a block must fit it.
  virtual BlockLayout layout() const { return {}; }

  // n rows of k coefficients: block i = Σ_j generator(i, j) · data block j. The first k rows are
  // the identity (all codes here are systematic). With s sub-blocks it has n · s rows of k · s
  // coefficients: row i · s + a and column i · s + a are sub-block a of block i.
  virtual const Matrix& generator() const = 0;

  // Writes the equation that rebuilds `failed` from some of `survivors`.
  //
  // `survivors` is in the caller's order of preference; the code takes the earliest ones that work
  // and that it needs, so a caller that wants one exact set passes only that set. The code alone
  // says which sets work: callers never count to k.
  //
  // INVALID_ARGUMENT: an index out of range, a block both failed and surviving or named twice, or
  // no failed block. FAILED_PRECONDITION: the survivors do not determine the failed blocks; the
  // message says how many there are and what is needed.
  virtual absl::StatusOr<RepairEquation> Equation(std::span<const int> failed,
                                                  std::span<const int> survivors) const = 0;
};

// Why these survivors do not determine a block, for people: there are too few of them, or they are
// not the right ones, as a code that is not MDS may need.
std::string WhyUndetermined(const ErasureCode& code, const std::vector<std::string>& survivors);

// Makes a code from its name:
//   "rs-cauchy(n,k)"       Reed-Solomon, systematic Cauchy matrix, 1 <= k < n <= 255. The default:
//                          "rs(n,k)" is the same code. MDS for every n and k.
//   "rs-vandermonde(n,k)"  ISA-L's gf_gen_rs_matrix form (rows of powers of 2), only where it is
//                          MDS; otherwise INVALID_ARGUMENT names a singular submatrix.
//   "rs-legacy(n,k)"       HDFS-3's older Reed-Solomon code; see reed_solomon.h. MDS.
//   "xor(n,k)"             one parity, the XOR of the data: n = k + 1.
//   "lrc(k,groups,global)" Azure's local reconstruction code; see local_reconstruction.h.
//   "rotated-rs(n,k)"      Rotated RS; see rotated_reed_solomon.h. "rotated-rs(n,k,rows,unit)" with
//                          other than 2 sub-blocks in units of 32768 bytes.
//   "hdfs:RS-6-3"          and the like: a code by the name of HDFS's policy; hdfs_policy.h.
//   "qfs-rs(k,3)"          QFS's own code; see qfs_codes.h. MDS.
//   "qfs-jerasure(6,3)"    QFS's other code of that size. MDS.
// INVALID_ARGUMENT for an unknown family or bad parameters, saying which and what is allowed.
absl::StatusOr<std::shared_ptr<const ErasureCode>> CreateErasureCode(const std::string& name);

}  // namespace ecpipe

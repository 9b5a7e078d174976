// SPDX-License-Identifier: Apache-2.0
#include "codec/reed_solomon.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codec/gf256.h"

namespace ecpipe {
namespace {

absl::Status CheckParameters(int n, int k) {
  if (1 <= k && k < n && n <= 255) return absl::OkStatus();
  return absl::InvalidArgumentError("RS(" + std::to_string(n) + "," + std::to_string(k) +
                                    ") is not a valid code: it needs 1 <= k < n <= 255");
}

Matrix WithIdentity(int n, int k) {
  Matrix generator(n, k);
  for (int i = 0; i < k; ++i) generator.at(i, i) = 1;
  return generator;
}

using Indices = std::vector<int>;

// Steps to the next increasing sequence below `limit`; false after the last one.
bool NextCombination(Indices* indices, int limit) {
  const int size = static_cast<int>(indices->size());
  for (int i = size - 1; i >= 0; --i) {
    int& index = (*indices)[static_cast<size_t>(i)];
    if (index >= limit - (size - i)) continue;
    ++index;
    for (size_t j = static_cast<size_t>(i) + 1; j < indices->size(); ++j) {
      (*indices)[j] = (*indices)[j - 1] + 1;
    }
    return true;
  }
  return false;
}

Indices FirstCombination(int size) {
  Indices indices;
  for (int i = 0; i < size; ++i) indices.push_back(i);
  return indices;
}

bool IsSingular(const Matrix& parity, const Indices& rows, const Indices& columns) {
  const int size = static_cast<int>(rows.size());
  Matrix minor(size, size);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      minor.at(i, j) = parity.at(rows[static_cast<size_t>(i)], columns[static_cast<size_t>(j)]);
    }
  }
  return !Invert(minor).has_value();
}

// A systematic code is MDS exactly if every square submatrix of its parity rows is regular.
//
// V[p][j] = 2^(pj), so moving all rows of a submatrix by one, or all its columns, only scales the
// other dimension by non-zero factors: submatrices that contain row 0 and column 0 stand for all.
// Small ones come first, and where one is singular, a small one is: counted over all n <= 255, no
// check looks at more than 31,877 submatrices, which takes 10 ms. MDS are m = n - k <= 3 with any
// k, m = 4 with k <= 21, m = 5 with k <= 5, m <= 21 with k = 4, and k <= 3.
absl::Status CheckMds(const Matrix& parity, const std::string& name) {
  constexpr int kMostSubmatrices = 31'877;
  int checked = 0;
  for (int size = 2; size <= std::min(parity.rows(), parity.columns()); ++size) {
    Indices rows = FirstCombination(size);
    do {
      Indices columns = FirstCombination(size);
      do {
        ECPIPE_CHECK(++checked <= kMostSubmatrices);
        if (!IsSingular(parity, rows, columns)) continue;
        return absl::InvalidArgumentError(
            name + " is not MDS: the submatrix of parity rows " + absl::StrJoin(rows, ",") +
            " and data columns " + absl::StrJoin(columns, ",") + " is singular; use rs-cauchy");
      } while (NextCombination(&columns, parity.columns()) && columns.front() == 0);
    } while (NextCombination(&rows, parity.rows()) && rows.front() == 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Matrix> CauchyGenerator(int n, int k) {
  ECPIPE_RETURN_IF_ERROR(CheckParameters(n, k));
  Matrix generator = WithIdentity(n, k);
  for (int i = k; i < n; ++i) {
    for (int j = 0; j < k; ++j) generator.at(i, j) = GfInverse(static_cast<uint8_t>(i ^ j));
  }
  return generator;
}

absl::StatusOr<Matrix> VandermondeGenerator(int n, int k) {
  ECPIPE_RETURN_IF_ERROR(CheckParameters(n, k));
  Matrix parity(n - k, k);
  uint8_t base = 1;
  for (int p = 0; p < n - k; ++p) {
    uint8_t power = 1;
    for (int j = 0; j < k; ++j) {
      parity.at(p, j) = power;
      power = GfMultiply(power, base);
    }
    base = GfMultiply(base, 2);
  }
  const std::string name = "rs-vandermonde(" + std::to_string(n) + "," + std::to_string(k) + ")";
  ECPIPE_RETURN_IF_ERROR(CheckMds(parity, name));
  Matrix generator = WithIdentity(n, k);
  for (int p = 0; p < n - k; ++p) {
    for (int j = 0; j < k; ++j) generator.at(k + p, j) = parity.at(p, j);
  }
  return generator;
}

absl::StatusOr<Matrix> LegacyGenerator(int n, int k) {
  ECPIPE_RETURN_IF_ERROR(CheckParameters(n, k));
  const int m = n - k;
  // Coefficients of g(x), the lowest first; that of x^m is 1.
  std::vector<uint8_t> divisor = {1};
  uint8_t root = 1;
  for (int i = 0; i < m; ++i) {
    divisor.insert(divisor.begin(), 0);
    for (size_t at = 0; at + 1 < divisor.size(); ++at) {
      divisor[at] ^= GfMultiply(divisor[at + 1], root);
    }
    root = GfMultiply(root, 2);
  }
  Matrix generator = WithIdentity(n, k);
  // x^(m + j) mod g(x), which is what data block j adds: x^m is the rest of g(x), and each further
  // power is the one before times x.
  std::vector<uint8_t> power(divisor.begin(), divisor.end() - 1);
  for (int j = 0; j < k; ++j) {
    for (int p = 0; p < m; ++p) generator.at(k + p, j) = power[static_cast<size_t>(p)];
    const uint8_t carry = power.back();
    power.insert(power.begin(), 0);
    power.pop_back();
    for (size_t at = 0; at < power.size(); ++at) power[at] ^= GfMultiply(divisor[at], carry);
  }
  return generator;
}

absl::StatusOr<Matrix> XorGenerator(int n, int k) {
  ECPIPE_RETURN_IF_ERROR(CheckParameters(n, k));
  if (n != k + 1) {
    return absl::InvalidArgumentError(
        "xor(" + std::to_string(n) + "," + std::to_string(k) +
        ") is not a valid code: it has one parity block, so n = k + 1");
  }
  Matrix generator = WithIdentity(n, k);
  for (int j = 0; j < k; ++j) generator.at(k, j) = 1;
  return generator;
}

}  // namespace ecpipe

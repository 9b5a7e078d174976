// SPDX-License-Identifier: Apache-2.0
#include "sim/checks.h"

#include <algorithm>

namespace ecpipe::sim {

bool Checks::Right(const std::string& block_id, uint64_t offset,
                   std::span<const uint8_t> bytes) const {
  const auto found = truth_.find(block_id);
  if (found == truth_.end()) return false;
  const std::vector<uint8_t>& truth = found->second;
  if (offset + bytes.size() > truth.size()) return false;
  return std::equal(bytes.begin(), bytes.end(), truth.begin() + static_cast<ptrdiff_t>(offset));
}

}  // namespace ecpipe::sim

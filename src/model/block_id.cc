// SPDX-License-Identifier: Apache-2.0
#include "model/block_id.h"

#include <algorithm>

namespace ecpipe {
namespace {

constexpr size_t kMaxBlockIdBytes = 255;  // the longest file name of the usual file systems

// Not isalnum: that one follows the locale.
bool Allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

absl::Status ValidateBlockId(const std::string& block_id) {
  const bool good = !block_id.empty() && block_id.size() <= kMaxBlockIdBytes &&
                    block_id.front() != '.' &&
                    std::all_of(block_id.begin(), block_id.end(), Allowed);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "not a valid id; an id is 1 to 255 letters, digits, '.', '_' or '-', and does not begin with "
      "'.'");
}

}  // namespace ecpipe

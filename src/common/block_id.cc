// SPDX-License-Identifier: Apache-2.0
#include "common/block_id.h"

namespace ecpipe {
namespace {

// Not isalnum: that depends on the locale.
bool IsAllowed(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

absl::Status ValidateBlockId(const std::string& block_id) {
  if (block_id.empty()) return absl::InvalidArgumentError("the id is empty");
  if (block_id.size() > kMaxBlockIdLength) {
    return absl::InvalidArgumentError("the id has " + std::to_string(block_id.size()) +
                                      " characters; up to " + std::to_string(kMaxBlockIdLength) +
                                      " are allowed");
  }
  if (block_id.front() == '.') {
    return absl::InvalidArgumentError("the id starts with '.', which is not allowed");
  }
  for (size_t i = 0; i < block_id.size(); ++i) {
    if (IsAllowed(block_id[i])) continue;
    return absl::InvalidArgumentError("character " + std::to_string(i + 1) +
                                      " of the id is not allowed: use A-Z, a-z, 0-9, '.', '_', '-'");
  }
  return absl::OkStatus();
}

}  // namespace ecpipe

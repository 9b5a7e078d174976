// SPDX-License-Identifier: Apache-2.0
// A file of a storage system, as far as its bytes lie in data blocks of stripes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ecpipe {

struct StripedFile {
  // A part of the file. Its byte x is in data block x / cell_bytes % k, at byte
  // x / (k · cell_bytes) · cell_bytes + x % cell_bytes, where k is the number of data blocks.
  struct Part {
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
    uint64_t cell_bytes = 0;
    std::vector<std::string> data_blocks;  // by name; empty: it does not exist, and counts as zeros

    friend bool operator==(const Part&, const Part&) = default;
  };
  static constexpr int kMaxParts = 64;  // in one answer
  static constexpr size_t kMaxPathBytes = 4096;

  std::string id;      // of no other file of the system, whatever its path becomes
  uint64_t bytes = 0;  // of the whole file
  std::vector<Part> parts;

  friend bool operator==(const StripedFile&, const StripedFile&) = default;
};

}  // namespace ecpipe

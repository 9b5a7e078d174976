// SPDX-License-Identifier: Apache-2.0
// The two ends of a probe: a made-up block, and a sink that throws its bytes away.
#pragma once

#include <algorithm>

#include "base/status.h"
#include "pipeline/block_reader.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

// All zeros.
class ZeroBlock : public BlockReader {
 public:
  explicit ZeroBlock(uint64_t bytes) : bytes_(bytes) {}

  uint64_t bytes() const override { return bytes_; }
  absl::Status ReadAt(uint64_t, std::span<uint8_t> out) override {
    std::fill(out.begin(), out.end(), uint8_t{0});
    return absl::OkStatus();
  }
  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    ECPIPE_RETURN_IF_ERROR(ReadAt(offset, out));
    return true;
  }

 private:
  const uint64_t bytes_;
};

}  // namespace ecpipe

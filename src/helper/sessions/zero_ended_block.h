// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// A block that goes on with zeros behind its own end, up to `bytes`.
class ZeroEndedBlock : public BlockReader {
 public:
  ZeroEndedBlock(std::unique_ptr<BlockReader> block, uint64_t bytes)
      : block_(std::move(block)), bytes_(bytes) {}

  uint64_t bytes() const override { return bytes_; }
  std::optional<ChecksumKind> checksum() const override { return block_->checksum(); }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const std::span<uint8_t> own = Own(offset, out);
    return own.empty() ? absl::OkStatus() : block_->ReadAt(offset, own);
  }
  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const std::span<uint8_t> own = Own(offset, out);
    if (own.empty()) return true;
    return block_->TryReadAt(offset, own);
  }

 private:
  // The part of `out` that the block itself has; the rest is zeros then.
  std::span<uint8_t> Own(uint64_t offset, std::span<uint8_t> out) const {
    const uint64_t left = block_->bytes() - std::min(block_->bytes(), offset);
    const auto own = static_cast<size_t>(std::min<uint64_t>(left, out.size()));
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(own), out.end(), uint8_t{0});
    return out.first(own);
  }

  const std::unique_ptr<BlockReader> block_;
  const uint64_t bytes_;
};

}  // namespace ecpipe

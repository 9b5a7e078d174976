// SPDX-License-Identifier: Apache-2.0
#include "helper/sessions/whole_blocks.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/bytes/sha256.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr size_t kStepBytes = size_t{1} << 20;

absl::StatusOr<WholeBlock> ReadWhole(BlockReader* block, const std::function<bool()>& stop) {
  Sha256 sha256;
  std::vector<uint8_t> buffer(kStepBytes);
  for (uint64_t at = 0; at < block->bytes(); at += kStepBytes) {
    if (stop()) return absl::CancelledError("nobody waits for the check any more");
    const auto step = static_cast<size_t>(std::min<uint64_t>(kStepBytes, block->bytes() - at));
    const std::span<uint8_t> piece = std::span(buffer).first(step);
    ECPIPE_RETURN_IF_ERROR(block->ReadAt(at, piece));
    sha256.Update(piece);
  }
  return WholeBlock{block->bytes(), sha256.FinishHex(), block->has_checksums()};
}

}  // namespace

absl::StatusOr<WholeBlock> WholeBlocks::Check(const std::string& block_id,
                                              const std::function<bool()>& stop) {
  if (busy_.exchange(true)) {
    return absl::ResourceExhaustedError("another block is being checked here");
  }
  absl::StatusOr<WholeBlock> read = absl::UnknownError("");
  absl::StatusOr<std::unique_ptr<BlockReader>> block = store_->Open(block_id);
  if (block.ok()) {
    read = ReadWhole(block->get(), stop);
  } else {
    read = block.status();
  }
  busy_ = false;
  return read;
}

}  // namespace ecpipe

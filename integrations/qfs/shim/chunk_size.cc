// SPDX-License-Identifier: Apache-2.0
#include "shim/chunk_size.h"

#include <algorithm>
#include <string>

namespace ecpipe_qfs {
namespace {

constexpr int64_t kCellUnit = 4096;
constexpr int32_t kReedSolomonStriper = 2;
constexpr int32_t kJerasureStriper = 3;
// Far beyond any file, and small enough that no product below overflows.
constexpr int64_t kMaxFileBytes = int64_t{1} << 55;

Failure Refuse(const std::string& what) {
  return {ECPIPE_QFS_INVALID_ARGUMENT, what + ". QFS has to recover this chunk itself"};
}

}  // namespace

Failure CheckChunk(const ecpipe_qfs_chunk& chunk) {
  if (chunk.striper_type != kReedSolomonStriper && chunk.striper_type != kJerasureStriper) {
    return Refuse("striper type " + std::to_string(chunk.striper_type) + " is not 2 or 3");
  }
  if (chunk.data_stripes < 1 || chunk.data_stripes > kMaxDataStripes) {
    return Refuse(std::to_string(chunk.data_stripes) + " data stripes are not 1 to 64");
  }
  if (chunk.recovery_stripes != kRecoveryStripes) {
    return Refuse(std::to_string(chunk.recovery_stripes) + " recovery stripes are not 3");
  }
  const int64_t cell = chunk.stripe_size;
  if (cell < kCellUnit || cell % kCellUnit != 0 || kMaxChunkBytes % cell != 0) {
    return Refuse("stripe size " + std::to_string(cell) +
                  " is not a multiple of 4096 that divides 64 MiB");
  }
  if (chunk.file_id <= 0 || chunk.chunk_id <= 0 || chunk.chunk_version < 0) {
    return Refuse("the chunk's ids are " + std::to_string(chunk.file_id) + "." +
                  std::to_string(chunk.chunk_id) + "." + std::to_string(chunk.chunk_version) +
                  ", which no stable chunk has");
  }
  if (chunk.file_size <= 0 || chunk.file_size > kMaxFileBytes) {
    return Refuse("the file's size is " + std::to_string(chunk.file_size) + " bytes");
  }
  if (chunk.chunk_offset < 0 || chunk.chunk_offset % kMaxChunkBytes != 0 ||
      chunk.chunk_offset > 4 * kMaxFileBytes) {
    return Refuse("chunk offset " + std::to_string(chunk.chunk_offset) +
                  " is not a multiple of 64 MiB");
  }
  return {};
}

int64_t ChunkBytes(const ecpipe_qfs_chunk& chunk) {
  const int64_t width = chunk.data_stripes + chunk.recovery_stripes;
  const int64_t slot = chunk.chunk_offset / kMaxChunkBytes;
  const int64_t group_bytes = chunk.data_stripes * kMaxChunkBytes;
  if (slot / width > kMaxFileBytes / group_bytes) return 0;
  const int64_t rest = chunk.file_size - slot / width * group_bytes;
  if (rest <= 0) return 0;
  if (rest >= group_bytes) return kMaxChunkBytes;
  // A recovery chunk is as long as the longest data chunk, which is the first.
  const int64_t stripe = slot % width;
  const int64_t index = stripe < chunk.data_stripes ? stripe : 0;
  const int64_t cell = chunk.stripe_size;
  const int64_t row = chunk.data_stripes * cell;
  const int64_t last_row = rest % row;
  return rest / row * cell + std::clamp(last_row - index * cell, int64_t{0}, cell);
}

Failure RangeBytes(const ecpipe_qfs_chunk& chunk, int64_t* bytes) {
  const Failure refused = CheckChunk(chunk);
  if (!refused.ok()) return refused;
  const int64_t length = ChunkBytes(chunk);
  if (length == 0) {
    return {ECPIPE_QFS_FAILED_PRECONDITION, "a file of " + std::to_string(chunk.file_size) +
                                                " bytes has no bytes in the chunk at " +
                                                std::to_string(chunk.chunk_offset) +
                                                ". QFS has to recover this chunk itself"};
  }
  if (chunk.offset < 0 || chunk.offset >= length || chunk.bytes < 0 ||
      chunk.bytes > length - chunk.offset) {
    return {ECPIPE_QFS_INVALID_ARGUMENT,
            "the range of " + std::to_string(chunk.bytes) + " bytes at " +
                std::to_string(chunk.offset) + " is not within the chunk's " +
                std::to_string(length) + " bytes. Ask for a range within the chunk"};
  }
  *bytes = chunk.bytes == 0 ? length - chunk.offset : chunk.bytes;
  return {};
}

}  // namespace ecpipe_qfs

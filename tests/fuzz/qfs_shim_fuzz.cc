// SPDX-License-Identifier: Apache-2.0
// What libecpipe_qfs.so is told: a chunk by a chunkserver, a configuration by an operator, frames
// and texts by an endpoint. Refused, or within the limits.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "shim/chunk_size.h"
#include "shim/frame.h"
#include "shim/settings.h"

namespace ecpipe_qfs {
namespace {

void CheckHeader(std::span<const uint8_t> bytes) {
  FrameHeaderBytes raw{};
  std::copy(bytes.begin(), bytes.end(), raw.begin());
  FrameHeader header;
  const Failure failure = DecodeFrameHeader(raw, &header);
  if (!failure.ok()) {
    ECPIPE_CHECK(failure.code == ECPIPE_QFS_DATA_LOSS && !failure.message.empty());
    return;
  }
  ECPIPE_CHECK(header.type != FrameType::kRepair);
  ECPIPE_CHECK(header.bytes <= (header.type == FrameType::kData ? kMaxDataBytes : kMaxTextBytes));
}

// A range is within its chunk. The data chunks of a group add up to what the file has of it, and
// none is longer than a recovery chunk.
void CheckGeometry(ecpipe::FuzzInput* input) {
  ecpipe_qfs_chunk chunk{};
  chunk.struct_bytes = sizeof chunk;
  chunk.file_id = 1;
  chunk.chunk_id = 2;
  chunk.chunk_version = 3;
  const auto slot = input->Take<uint16_t>();
  chunk.chunk_offset = slot * kMaxChunkBytes + input->Take<uint8_t>() % 2;
  chunk.file_size = input->Take<int64_t>();
  chunk.stripe_size = int64_t{input->Take<uint16_t>()} << 10;
  chunk.striper_type = input->Take<uint8_t>() % 5;
  chunk.data_stripes = input->Take<int8_t>();
  chunk.recovery_stripes = kRecoveryStripes;
  chunk.offset = input->Take<int32_t>();
  chunk.bytes = input->Take<int32_t>();
  int64_t bytes = 0;
  if (RangeBytes(chunk, &bytes).ok()) {
    ECPIPE_CHECK(bytes > 0 && chunk.offset + bytes <= ChunkBytes(chunk));
  }
  if (!CheckChunk(chunk).ok()) return;
  const int64_t width = chunk.data_stripes + kRecoveryStripes;
  const int64_t group = slot / width;
  const int64_t group_bytes = chunk.data_stripes * kMaxChunkBytes;
  chunk.chunk_offset = (group * width + chunk.data_stripes) * kMaxChunkBytes;
  const int64_t recovery_bytes = ChunkBytes(chunk);
  int64_t sum = 0;
  for (int64_t i = 0; i < chunk.data_stripes; ++i) {
    chunk.chunk_offset = (group * width + i) * kMaxChunkBytes;
    const int64_t data_bytes = ChunkBytes(chunk);
    ECPIPE_CHECK(data_bytes >= 0 && data_bytes <= recovery_bytes);
    sum += data_bytes;
  }
  ECPIPE_CHECK(recovery_bytes <= kMaxChunkBytes);
  ECPIPE_CHECK(sum == std::clamp(chunk.file_size - group * group_bytes, int64_t{0}, group_bytes));
}

void CheckTexts(const std::string& text) {
  const Failure told = FailureOfError(text);
  ECPIPE_CHECK(told.code > 0 && told.code <= ECPIPE_QFS_UNAUTHENTICATED);
  Settings settings;
  const Failure failure = ParseSettings(text, "file", &settings);
  if (!failure.ok()) {
    ECPIPE_CHECK(failure.code == ECPIPE_QFS_INVALID_ARGUMENT);
    ECPIPE_CHECK(failure.message.rfind("file:", 0) == 0);
    return;
  }
  ECPIPE_CHECK(settings.unix_path.empty() == (settings.tcp_bytes > 0));
  ECPIPE_CHECK(settings.unix_path.size() <= 107);
  for (const int millis : {settings.timeout_ms, settings.stall_ms}) {
    ECPIPE_CHECK(millis >= 1 && millis <= 600'000);
  }
  // What is asked can be read: each line is a key and a value, and no value has brought a line.
  const std::string request = RepairText({}, 1, settings);
  const auto lines = 13 + !settings.scheme.empty() + !settings.client.empty() + settings.background;
  ECPIPE_CHECK(std::count(request.begin(), request.end(), '\n') == lines);
}

}  // namespace
}  // namespace ecpipe_qfs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  ecpipe_qfs::CheckHeader(input.Bytes(ecpipe_qfs::kFrameHeaderBytes));
  ecpipe_qfs::CheckGeometry(&input);
  ecpipe_qfs::CheckTexts(input.Rest());
  return 0;
}

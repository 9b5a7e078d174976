// SPDX-License-Identifier: Apache-2.0
// Hellos and frame headers: what is accepted encodes to the same bytes again, up to reserved ones.
#include <algorithm>
#include <array>
#include <cstring>

#include "common/check.h"
#include "common/crc32c.h"
#include "common/frame.h"

using ecpipe::kFrameHeaderBytes;
using ecpipe::kHelloBytes;

namespace {

// A random checksum is almost never right; give the parser behind it work, too.
template <size_t N>
std::array<uint8_t, N> WithRightChecksum(const uint8_t* data, size_t size) {
  std::array<uint8_t, N> bytes{};
  std::copy_n(data, std::min(size, N), bytes.begin());
  const uint32_t crc = ecpipe::Crc32c({bytes.data(), N - 4});
  for (size_t i = 0; i < 4; ++i) bytes[N - 4 + i] = static_cast<uint8_t>(crc >> (8 * i));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto frame = WithRightChecksum<kFrameHeaderBytes>(data, size);
  if (const auto header = ecpipe::DecodeFrameHeader(frame); header.ok()) {
    ECPIPE_CHECK(header->payload_bytes <= ecpipe::kMaxSliceBytes);
    std::array<uint8_t, kFrameHeaderBytes> again{};
    ecpipe::EncodeFrameHeader(*header, again);
    ECPIPE_CHECK(again == frame);
    ECPIPE_CHECK(!ecpipe::ErrorFromFrame(*header, {data, std::min<size_t>(size, 64)}).ok());
  }
  const auto hello = WithRightChecksum<kHelloBytes>(data, size);
  if (const auto decoded = ecpipe::DecodeHello(hello); decoded.ok()) {
    std::array<uint8_t, kHelloBytes> again{};
    ecpipe::EncodeHello(*decoded, again);
    ECPIPE_CHECK(ecpipe::DecodeHello(again).ok() && *ecpipe::DecodeHello(again) == *decoded);
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Hellos, frame headers and error frames: what is accepted encodes to the same bytes again.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes/crc32c.h"
#include "base/bytes/utf8_text.h"
#include "base/check.h"
#include "net/frame.h"

namespace ecpipe {
namespace {

// A random checksum is almost never right; give the parser behind it work, too.
template <size_t N>
std::array<uint8_t, N> WithRightChecksum(const uint8_t* data, size_t size) {
  std::array<uint8_t, N> bytes{};
  std::copy_n(data, std::min(size, N), bytes.begin());
  const uint32_t crc = Crc32c({bytes.data(), N - 4});
  for (size_t i = 0; i < 4; ++i) bytes[N - 4 + i] = static_cast<uint8_t>(crc >> (8 * i));
  return bytes;
}

void CheckHello(const std::array<uint8_t, kHelloBytes>& bytes) {
  const absl::StatusOr<Hello> hello = DecodeHello(bytes);
  ECPIPE_CHECK(hello.ok() || absl::IsInvalidArgument(hello.status()));
  if (!hello.ok()) return;
  std::array<uint8_t, kHelloBytes> again{};
  EncodeHello(*hello, again);
  ECPIPE_CHECK(again == bytes);
}

// The sender's text is anything; what the receiver makes of it is an error that can be passed on.
void CheckErrorFrame(const FrameHeader& header, std::span<const uint8_t> text) {
  const absl::Status error = ErrorFromFrame(header, text);
  ECPIPE_CHECK(!error.ok() && IsCleanText(std::string(error.message())));
  const std::string frame = EncodeErrorFrame(header, error);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(frame.data()),
                                       frame.size());
  const auto sent = DecodeFrameHeader(bytes.first<kFrameHeaderBytes>());
  ECPIPE_CHECK(sent.ok() && sent->type == FrameType::kError);
  const std::span<const uint8_t> payload = bytes.subspan(kFrameHeaderBytes);
  ECPIPE_CHECK(sent->payload_bytes == payload.size() && payload.size() <= kMaxErrorTextBytes);
  ECPIPE_CHECK(CheckPayload(*sent, payload).ok());
  const absl::Status received = ErrorFromFrame(*sent, payload);
  ECPIPE_CHECK(received.code() == error.code());
  ECPIPE_CHECK(std::string(error.message()).starts_with(std::string(received.message())));
}

void CheckFrame(const std::array<uint8_t, kFrameHeaderBytes>& bytes,
                std::span<const uint8_t> payload) {
  const absl::StatusOr<FrameHeader> header = DecodeFrameHeader(bytes);
  ECPIPE_CHECK(header.ok() || absl::IsDataLoss(header.status()));
  if (!header.ok()) return;
  ECPIPE_CHECK(header->payload_bytes <=
               (header->type == FrameType::kSlice ? kMaxSliceBytes : kMaxErrorTextBytes));
  std::array<uint8_t, kFrameHeaderBytes> again{};
  EncodeFrameHeader(*header, again);
  ECPIPE_CHECK(again == bytes);
  ECPIPE_CHECK(CheckExpected(*header, *header).ok());
  FrameHeader other = *header;
  ++other.attempt;
  ECPIPE_CHECK(absl::IsDataLoss(CheckExpected(*header, other)));
  CheckErrorFrame(*header, payload);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ecpipe::kFrameHeaderBytes;
  using ecpipe::kHelloBytes;
  // As it came, too: the checksum itself is part of the format.
  if (size >= kFrameHeaderBytes) {
    std::array<uint8_t, kFrameHeaderBytes> raw{};
    std::copy_n(data, raw.size(), raw.begin());
    ecpipe::CheckFrame(raw, {});
  }
  const size_t skipped = std::min(size, kFrameHeaderBytes);
  ecpipe::CheckFrame(ecpipe::WithRightChecksum<kFrameHeaderBytes>(data, size),
                     {data + skipped, size - skipped});
  ecpipe::CheckHello(ecpipe::WithRightChecksum<kHelloBytes>(data, size));
  return 0;
}

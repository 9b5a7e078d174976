// SPDX-License-Identifier: Apache-2.0
// The bytes of the data plane: the hello with which a receiver opens a stream, and the frames that
// follow from the sender. docs/wire.md has the grammar and a worked dump. All integers are
// little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

inline constexpr size_t kHelloBytes = 52;
inline constexpr size_t kFrameHeaderBytes = 40;
inline constexpr size_t kMaxErrorTextBytes = 1024;

struct Hello {
  EdgeId edge;
  EdgeToken token{};

  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class FrameType : uint8_t {
  kSlice = 1,  // one row of one slice
  kError = 2,  // the sender gives up; the payload is text, `row` the canonical status code
};

struct FrameHeader {
  FrameType type = FrameType::kSlice;
  Row row = 0;
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  uint32_t lane = 0;
  uint32_t slice_index = 0;
  uint32_t payload_bytes = 0;
  uint32_t payload_crc32c = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

void EncodeHello(const Hello& hello, std::span<uint8_t, kHelloBytes> out);
// INVALID_ARGUMENT for another magic, version or checksum.
absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t, kHelloBytes> bytes);

void EncodeFrameHeader(const FrameHeader& header, std::span<uint8_t, kFrameHeaderBytes> out);
// DATA_LOSS for another magic, version, type or checksum, or a payload over the limit of its type.
absl::StatusOr<FrameHeader> DecodeFrameHeader(std::span<const uint8_t, kFrameHeaderBytes> bytes);

// Compares what arrived with what the plan says must arrive now (payload_crc32c of `expected` is
// not looked at). DATA_LOSS names the first field that differs; a frame of another repair or
// attempt is refused here, before its payload is touched.
[[nodiscard]] absl::Status CheckExpected(const FrameHeader& header, const FrameHeader& expected);

// DATA_LOSS when the payload does not have the header's checksum.
[[nodiscard]] absl::Status CheckPayload(const FrameHeader& header,
                                        std::span<const uint8_t> payload);

// The status in an error frame: its text cleaned (utf8_text.h), with the node at fault (fault.h)
// that the sender gave it.
absl::Status ErrorFromFrame(const FrameHeader& header, std::span<const uint8_t> payload);
// A whole error frame for `status`, its text cut to kMaxErrorTextBytes.
std::string EncodeErrorFrame(const FrameHeader& stream, const absl::Status& status);

// Compares two tokens in time that does not depend on where they differ.
bool SameToken(const EdgeToken& a, const EdgeToken& b);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
// The frames of the requestor endpoint's protocol, as a client sees them (docs/wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "shim/failure.h"
#include "shim/settings.h"

namespace ecpipe_qfs {

inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr uint32_t kMaxTextBytes = 64u << 10;
inline constexpr uint32_t kMaxDataBytes = 1u << 20;

enum class FrameType : uint8_t { kRepair = 1, kHeader = 2, kData = 3, kEnd = 4, kError = 5 };

struct FrameHeader {
  FrameType type = FrameType::kRepair;
  uint32_t bytes = 0;
  uint32_t crc = 0;
};

using FrameHeaderBytes = std::array<uint8_t, kFrameHeaderBytes>;

// The header of a frame with this payload, which is within the limit of its type.
FrameHeaderBytes EncodeFrameHeader(FrameType type, const uint8_t* payload, size_t bytes);
// DATA_LOSS: no frame that an endpoint sends to who asked for one chunk.
Failure DecodeFrameHeader(const FrameHeaderBytes& bytes, FrameHeader* header);
// DATA_LOSS: the payload does not match its checksum.
Failure CheckPayload(const FrameHeader& header, const uint8_t* payload);

// The value of the line `KEY value` of a payload; nothing: there is none.
std::optional<std::string> LineValue(const std::string& text, const std::string& key);

// The payload of REPAIR.
std::string RepairText(const ecpipe_qfs_chunk& chunk, int64_t bytes, const Settings& settings);

// What an ERROR frame says, as a failure.
Failure FailureOfError(const std::string& text);

}  // namespace ecpipe_qfs

// SPDX-License-Identifier: Apache-2.0
// The protocol between a process of a storage system and the requestor endpoint. docs/wire.md
// describes it in full.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/checksum_kind.h"
#include "model/plan/repair_plan.h"
#include "model/stripe_facts.h"

namespace ecpipe {

inline constexpr size_t kEndpointFrameHeaderBytes = 16;
inline constexpr uint32_t kMaxEndpointTextBytes = 64u << 10;
inline constexpr uint32_t kMaxEndpointDataBytes = 1u << 20;

enum class EndpointFrame : uint8_t { kRepair = 1, kHeader = 2, kData = 3, kEnd = 4, kError = 5 };

struct EndpointFrameHeader {
  EndpointFrame type = EndpointFrame::kRepair;
  uint32_t bytes = 0;   // of the payload
  uint32_t crc = 0;     // CRC32C of the payload
  uint16_t target = 0;  // of DATA: which target's bytes, by its place in the request; otherwise 0
};

using EndpointFrameHeaderBytes = std::array<uint8_t, kEndpointFrameHeaderBytes>;

// The header of a frame with this payload, which is within the limit of its type. `target` is as
// in EndpointFrameHeader.
EndpointFrameHeaderBytes EncodeEndpointHeader(EndpointFrame type, std::span<const uint8_t> payload,
                                              uint16_t target = 0);
// INVALID_ARGUMENT: the bytes are not a header, or it has another version, an unknown type, a
// target that its type does not have, or a payload over the limit.
absl::StatusOr<EndpointFrameHeader> DecodeEndpointHeader(std::span<const uint8_t> bytes);
// INVALID_ARGUMENT: the payload does not belong to this header.
absl::Status CheckEndpointPayload(const EndpointFrameHeader& header,
                                  std::span<const uint8_t> payload);

// The request of a client: a range of one or several blocks of a stripe of a storage system.
struct EndpointRequest {
  struct Target {
    int index = 0;       // of the block in the stripe
    uint64_t bytes = 0;  // from `offset` on; the blocks of a stripe can have different lengths
    std::string block_id = {};
  };

  // The length of the longest range.
  uint64_t bytes() const;

  // Describes the stripe; none: the coordinator finds it out.
  std::optional<StripeFacts> facts;
  std::string claim;            // as in RepairTarget
  std::vector<Target> targets;  // at least one, and no more than the code can lose; by index
  uint64_t offset = 0;          // of the range in each block
  Duration timeout = std::chrono::seconds(2);  // until the first byte
  std::string scheme;                          // empty: the coordinator's default
  std::string client;                          // for logs; may be empty
  std::string cookie;                          // as in EndpointAccess; may be empty
  bool background = false;                     // as in RepairTarget
};

// INVALID_ARGUMENT, naming the key, for a text that is not exactly a request: an unknown, repeated
// or missing key, a bad value, facts that contradict each other, more targets than the code can
// lose, or a range that is not within its block.
absl::StatusOr<EndpointRequest> ParseEndpointRequest(const std::string& text);

// The payloads that the endpoint sends. `corrupt` are sources of the request whose replicas are
// known to be corrupt.
std::string EndpointHeaderText(const std::vector<EndpointRequest::Target>& targets,
                               const ChecksumKind& checksum, RepairId repair_id,
                               const std::vector<StripeFacts::Source>& corrupt);
std::string EndpointEndText(const std::vector<EndpointRequest::Target>& targets, uint32_t attempts,
                            const std::vector<StripeFacts::Source>& corrupt);
// For a status that is not OK. The message is cut, and has no line ends and only ASCII characters.
std::string EndpointErrorText(const absl::Status& status);

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_wire.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/bytes/crc32c.h"
#include "base/bytes/little_endian.h"
#include "base/status.h"
#include "requestor/endpoint/request_kinds.h"

namespace ecpipe {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {'E', 'C', 'P', 'R'};
constexpr uint8_t kVersion = 1;
constexpr size_t kMaxWordBytes = 255;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

uint32_t LimitOf(EndpointFrame type) {
  return type == EndpointFrame::kData ? kMaxEndpointDataBytes : kMaxEndpointTextBytes;
}

std::string BytesLine(const std::vector<EndpointRequest::Target>& targets) {
  std::string line = "bytes";
  for (const EndpointRequest::Target& target : targets) line += " " + std::to_string(target.bytes);
  return line + "\n";
}

std::string CorruptLines(const std::vector<StripeFacts::Source>& corrupt) {
  std::string lines;
  for (const StripeFacts::Source& source : corrupt) {
    lines += "corrupt " + std::to_string(source.index) + " " + source.storage_id + "\n";
  }
  return lines;
}

}  // namespace

uint64_t EndpointRequest::bytes() const {
  uint64_t longest = 0;
  for (const Target& target : targets) longest = std::max(longest, target.bytes);
  return longest;
}

EndpointFrameHeaderBytes EncodeEndpointHeader(EndpointFrame type, std::span<const uint8_t> payload,
                                              uint16_t target) {
  EndpointFrameHeaderBytes bytes{};
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  bytes[4] = kVersion;
  bytes[5] = static_cast<uint8_t>(type);
  PutLittleEndian(bytes, 6, target);
  PutLittleEndian(bytes, 8, static_cast<uint32_t>(payload.size()));
  PutLittleEndian(bytes, 12, Crc32c(payload));
  return bytes;
}

absl::StatusOr<EndpointFrameHeader> DecodeEndpointHeader(std::span<const uint8_t> bytes) {
  if (bytes.size() != kEndpointFrameHeaderBytes ||
      !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return Bad("the bytes are not a frame of the requestor endpoint's protocol");
  }
  if (bytes[4] != kVersion) {
    return Bad("protocol version " + std::to_string(bytes[4]) +
               " is not supported; this endpoint speaks version " + std::to_string(kVersion));
  }
  const auto type = static_cast<EndpointFrame>(bytes[5]);
  if (type < EndpointFrame::kRepair || type > EndpointFrame::kError) {
    return Bad("frame type " + std::to_string(bytes[5]) + " is not known");
  }
  const auto target = GetLittleEndian<uint16_t>(bytes, 6);
  if (target != 0 && type != EndpointFrame::kData) {
    return Bad("a frame that is of no target names one");
  }
  const auto length = GetLittleEndian<uint32_t>(bytes, 8);
  if (length > LimitOf(type)) {
    return Bad("a frame of " + std::to_string(length) + " bytes is over the limit");
  }
  return EndpointFrameHeader{type, length, GetLittleEndian<uint32_t>(bytes, 12), target};
}

absl::Status CheckEndpointPayload(const EndpointFrameHeader& header,
                                  std::span<const uint8_t> payload) {
  if (payload.size() == header.bytes && Crc32c(payload) == header.crc) return absl::OkStatus();
  return Bad("the payload does not match its checksum");
}

absl::StatusOr<EndpointRequest> ParseEndpointRequest(const std::string& text) {
  constexpr uint32_t kMostMillis = 600'000;
  RequestFields fields(text);
  EndpointRequest request;
  const std::string store = fields.Text("store");
  request.offset = fields.Number<uint64_t>("offset");
  const auto millis = fields.Number<uint32_t>("timeout-ms", 2000);
  if (millis == 0 || millis > kMostMillis) fields.Refuse("'timeout-ms' must be 1 to 600000");
  request.timeout = std::chrono::milliseconds(millis);
  request.scheme = fields.Text("scheme", "");
  request.client = fields.Text("client", "");
  request.cookie = fields.Text("cookie", "");
  const int background = fields.Number<int>("background", 0);
  if (background != 0 && background != 1) fields.Refuse("'background' must be 0 or 1");
  request.background = background == 1;
  for (const std::string* word : {&request.scheme, &request.client, &request.cookie}) {
    if (word->size() > kMaxWordBytes) {
      fields.Refuse("a value is longer than " + std::to_string(kMaxWordBytes) + " bytes");
    }
  }
  std::string known;
  for (const RequestKind& kind : RequestKinds()) {
    if (store == kind.store) {
      ECPIPE_RETURN_IF_ERROR(kind.read(&fields, &request));
      return request;
    }
    known += (known.empty() ? "" : " or ") + std::string(kind.store);
  }
  fields.Refuse("'store' must be " + known);
  return fields.status();
}

std::string EndpointHeaderText(const std::vector<EndpointRequest::Target>& targets,
                               const ChecksumKind& checksum, RepairId repair_id,
                               const std::vector<StripeFacts::Source>& corrupt) {
  using Type = ChecksumKind::Type;
  const std::string type = checksum.type == Type::kCrc32    ? "crc32 "
                           : checksum.type == Type::kCrc32c ? "crc32c "
                                                            : "adler32 ";
  return BytesLine(targets) + "checksum " + type + std::to_string(checksum.bytes_per_checksum) +
         "\nrepair " + RepairIdText(repair_id) + "\n" + CorruptLines(corrupt);
}

std::string EndpointEndText(const std::vector<EndpointRequest::Target>& targets, uint32_t attempts,
                            const std::vector<StripeFacts::Source>& corrupt) {
  return BytesLine(targets) + "attempts " + std::to_string(attempts) + "\n" + CorruptLines(corrupt);
}

std::string EndpointErrorText(const absl::Status& status) {
  constexpr size_t kMaxMessageBytes = 1024;
  std::string message = std::string(status.message()).substr(0, kMaxMessageBytes);
  for (char& c : message) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (message.empty()) message = "no reason is known";
  return "code " + absl::StatusCodeToString(status.code()) + "\nmessage " + message + "\n";
}

}  // namespace ecpipe

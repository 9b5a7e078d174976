// SPDX-License-Identifier: Apache-2.0
#include "shim/frame.h"

#include <algorithm>
#include <iterator>

#include "base/bytes/little_endian.h"
#include "shim/crc32c.h"

namespace ecpipe_qfs {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {'E', 'C', 'P', 'R'};
constexpr uint8_t kVersion = 1;

// By their numbers, which are those of ecpipe_qfs.h.
constexpr const char* kCodes[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

Failure Damaged(const std::string& what) {
  return {ECPIPE_QFS_DATA_LOSS, what + ". Compare the versions of the library and ecpipe-helper"};
}

}  // namespace

FrameHeaderBytes EncodeFrameHeader(FrameType type, const uint8_t* payload, size_t bytes) {
  FrameHeaderBytes header{};
  std::copy(kMagic.begin(), kMagic.end(), header.begin());
  header[4] = kVersion;
  header[5] = static_cast<uint8_t>(type);
  ecpipe::PutLittleEndian(header, 8, static_cast<uint32_t>(bytes));
  ecpipe::PutLittleEndian(header, 12, Crc32c(payload, bytes));
  return header;
}

Failure DecodeFrameHeader(const FrameHeaderBytes& bytes, FrameHeader* header) {
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return Damaged("what came is not a frame of ECPipe's endpoint");
  }
  if (bytes[4] != kVersion) {
    return Damaged("the endpoint speaks protocol version " + std::to_string(bytes[4]));
  }
  const auto type = static_cast<FrameType>(bytes[5]);
  if (type < FrameType::kHeader || type > FrameType::kError) {
    return Damaged("the endpoint sent a frame of type " + std::to_string(bytes[5]));
  }
  if (bytes[6] != 0 || bytes[7] != 0) return Damaged("a frame is of a target that nobody named");
  header->type = type;
  header->bytes = ecpipe::GetLittleEndian<uint32_t>(bytes, 8);
  header->crc = ecpipe::GetLittleEndian<uint32_t>(bytes, 12);
  if (header->bytes > (type == FrameType::kData ? kMaxDataBytes : kMaxTextBytes)) {
    return Damaged("a frame of " + std::to_string(header->bytes) + " bytes is over the limit");
  }
  return {};
}

Failure CheckPayload(const FrameHeader& header, const uint8_t* payload) {
  if (Crc32c(payload, header.bytes) == header.crc) return {};
  return {ECPIPE_QFS_DATA_LOSS,
          "a frame of " + std::to_string(header.bytes) +
              " bytes does not match its checksum, and was not used. Look for bad memory"};
}

std::optional<std::string> LineValue(const std::string& text, const std::string& key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, key.size() + 1, key + " ") == 0) {
      return text.substr(at + key.size() + 1, end - at - key.size() - 1);
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::string RepairText(const ecpipe_qfs_chunk& chunk, int64_t bytes, const Settings& settings) {
  std::string text = "store qfs\n";
  const auto add = [&text](const char* key, int64_t value) {
    text += std::string(key) + " " + std::to_string(value) + "\n";
  };
  add("file", chunk.file_id);
  add("chunk", chunk.chunk_id);
  add("version", chunk.chunk_version);
  add("chunk-offset", chunk.chunk_offset);
  add("file-size", chunk.file_size);
  add("striper", chunk.striper_type);
  add("data", chunk.data_stripes);
  add("parity", chunk.recovery_stripes);
  add("cell", chunk.stripe_size);
  add("offset", chunk.offset);
  add("bytes", bytes);
  add("timeout-ms", settings.timeout_ms);
  if (!settings.scheme.empty()) text += "scheme " + settings.scheme + "\n";
  if (!settings.client.empty()) text += "client " + settings.client + "\n";
  if (settings.background) text += "background 1\n";
  if (const std::string cookie = ReadCookie(settings); !cookie.empty()) {
    text += "cookie " + cookie + "\n";
  }
  return text;
}

Failure FailureOfError(const std::string& text) {
  const std::string name = LineValue(text, "code").value_or("");
  const auto* const found = std::find(std::begin(kCodes) + 1, std::end(kCodes), name);
  Failure failure{ECPIPE_QFS_UNKNOWN,
                  "ECPipe: " + LineValue(text, "message").value_or("no reason")};
  if (found != std::end(kCodes)) failure.code = static_cast<int>(found - std::begin(kCodes));
  return failure;
}

}  // namespace ecpipe_qfs

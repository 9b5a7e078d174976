// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_wire.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes/crc32c.h"
#include "base/bytes/little_endian.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {'E', 'C', 'P', 'R'};
constexpr uint8_t kVersion = 1;
constexpr size_t kMaxWordBytes = 255;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

uint32_t LimitOf(EndpointFrame type) {
  return type == EndpointFrame::kData ? kMaxEndpointDataBytes : kMaxEndpointTextBytes;
}

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// The values of a request by their keys, each of which is asked for once. The first trouble is
// kept.
class Fields {
 public:
  explicit Fields(const std::string& text) {
    for (size_t at = 0; at < text.size() && status_.ok();) {
      const size_t end = text.find('\n', at);
      if (end == std::string::npos) {
        Refuse("the last line has no line end");
        break;
      }
      AddLine(text.substr(at, end - at));
      at = end + 1;
    }
  }

  std::string Text(const std::string& key, std::optional<std::string> fallback = std::nullopt) {
    const auto found = values_.find(key);
    if (found == values_.end()) {
      if (!fallback) Refuse("'" + key + "' is missing");
      return fallback.value_or("");
    }
    std::string value = std::move(found->second);
    values_.erase(found);
    return value;
  }

  template <typename Integer>
  Integer Number(const std::string& key, std::optional<Integer> fallback = std::nullopt) {
    if (fallback && !values_.contains(key)) return *fallback;
    Integer value{};
    if (!Read(Text(key), &value)) Refuse("'" + key + "' is not a number, or is out of its range");
    return value;
  }

  // Numbers with a blank between them; one at least, since a value is never empty.
  template <typename Integer>
  std::vector<Integer> Numbers(const std::string& key) {
    const std::string text = Text(key);
    std::vector<Integer> numbers;
    for (size_t at = 0; at <= text.size() && numbers.size() <= StripeFacts::kMaxBlocks;) {
      const size_t end = std::min(text.find(' ', at), text.size());
      if (!Read(text.substr(at, end - at), &numbers.emplace_back())) {
        Refuse("'" + key + "' is not a list of numbers, or one is out of its range");
        break;
      }
      at = end + 1;
    }
    return numbers;
  }

  // "INDEX UUID", of each line.
  std::vector<StripeFacts::Source> Sources() {
    std::vector<StripeFacts::Source> sources;
    for (const std::string& line : sources_) {
      const size_t blank = line.find(' ');
      StripeFacts::Source& source = sources.emplace_back();
      if (blank == std::string::npos || !Read(line.substr(0, blank), &source.index)) {
        Refuse("a source is not a block index followed by a UUID");
        break;
      }
      source.storage_id = line.substr(blank + 1);
    }
    return sources;
  }

  void Refuse(const std::string& why) {
    if (status_.ok()) status_ = Bad(why);
  }

  // After all keys have been asked for.
  absl::Status Finish() {
    if (!values_.empty()) Refuse("'" + values_.begin()->first + "' is not a known key");
    return status_;
  }

 private:
  template <typename Integer>
  static bool Read(const std::string& text, Integer* value) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, *value);
    return error == std::errc() && rest == end && std::to_string(*value) == text;
  }

  void AddLine(const std::string& line) {
    const size_t blank = line.find(' ');
    if (!IsPrintable(line) || blank == 0 || blank == std::string::npos) {
      return Refuse("a line is not a key followed by a value");
    }
    const std::string key = line.substr(0, blank);
    std::string value = line.substr(blank + 1);
    if (key == "source") {
      sources_.push_back(std::move(value));
      if (sources_.size() > StripeFacts::kMaxSources) {
        Refuse("there are more than " + std::to_string(StripeFacts::kMaxSources) + " sources");
      }
    } else if (!values_.emplace(key, std::move(value)).second) {
      Refuse("'" + key + "' is given twice");
    }
  }

  std::map<std::string, std::string> values_;
  std::vector<std::string> sources_;
  absl::Status status_;
};

// Pairs the targets' indices with their lengths.
std::vector<EndpointRequest::Target> TargetsOf(Fields* fields) {
  const std::vector<int> indices = fields->Numbers<int>("target");
  const std::vector<uint64_t> bytes = fields->Numbers<uint64_t>("bytes");
  if (indices.size() != bytes.size()) fields->Refuse("'bytes' must have a number for each target");
  std::vector<EndpointRequest::Target> targets;
  for (size_t i = 0; i < std::min(indices.size(), bytes.size()); ++i) {
    targets.push_back({indices[i], bytes[i]});
  }
  return targets;
}

absl::Status CheckRange(const EndpointRequest& request, const EndpointRequest::Target& target) {
  const StripeFacts& facts = request.facts;
  if (target.index < 0 || target.index >= facts.blocks()) {
    return Bad("the block group has no block " + std::to_string(target.index));
  }
  const uint64_t block_bytes = facts.BlockBytes(target.index);
  if (target.bytes == 0 || request.offset >= block_bytes ||
      target.bytes > block_bytes - request.offset) {
    return Bad("the range is not within the " + std::to_string(block_bytes) + " bytes of block " +
               std::to_string(target.index));
  }
  return absl::OkStatus();
}

absl::Status CheckTargets(const EndpointRequest& request) {
  if (request.targets.size() > static_cast<size_t>(request.facts.parity)) {
    return Bad("there are more targets than the " + std::to_string(request.facts.parity) +
               " blocks that the group can lose");
  }
  for (size_t i = 0; i < request.targets.size(); ++i) {
    ECPIPE_RETURN_IF_ERROR(CheckRange(request, request.targets[i]));
    if (i > 0 && request.targets[i].index <= request.targets[i - 1].index) {
      return Bad("the targets are not in ascending order");
    }
  }
  return absl::OkStatus();
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

EndpointFrameHeaderBytes EncodeEndpointHeader(EndpointFrame type,
                                              std::span<const uint8_t> payload,
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
  Fields fields(text);
  EndpointRequest request;
  if (fields.Text("store") != "hdfs") fields.Refuse("'store' must be hdfs");
  request.facts.pool = fields.Text("pool");
  request.facts.group = fields.Number<int64_t>("group");
  request.facts.stamp = fields.Number<uint64_t>("stamp");
  request.facts.bytes = fields.Number<uint64_t>("group-bytes");
  request.facts.codec = fields.Text("codec");
  request.facts.data = fields.Number<int>("data");
  request.facts.parity = fields.Number<int>("parity");
  request.facts.cell_bytes = fields.Number<uint64_t>("cell");
  request.facts.sources = fields.Sources();
  request.targets = TargetsOf(&fields);
  request.offset = fields.Number<uint64_t>("offset");
  const auto millis = fields.Number<uint32_t>("timeout-ms", 2000);
  if (millis == 0 || millis > kMostMillis) fields.Refuse("'timeout-ms' must be 1 to 600000");
  request.timeout = std::chrono::milliseconds(millis);
  request.scheme = fields.Text("scheme", "");
  request.client = fields.Text("client", "");
  const int background = fields.Number<int>("background", 0);
  if (background != 0 && background != 1) fields.Refuse("'background' must be 0 or 1");
  request.background = background == 1;
  for (const std::string* word : {&request.scheme, &request.client}) {
    if (word->size() > kMaxWordBytes) {
      fields.Refuse("a value is longer than " + std::to_string(kMaxWordBytes) + " bytes");
    }
  }
  ECPIPE_RETURN_IF_ERROR(fields.Finish());
  ECPIPE_RETURN_IF_ERROR(request.facts.Validate());
  ECPIPE_RETURN_IF_ERROR(CheckTargets(request));
  return request;
}

std::string EndpointHeaderText(const std::vector<EndpointRequest::Target>& targets,
                               const ChecksumKind& checksum, RepairId repair_id,
                               const std::vector<StripeFacts::Source>& corrupt) {
  const bool crc32 = checksum.type == ChecksumKind::Type::kCrc32;
  return BytesLine(targets) + "checksum " + (crc32 ? "crc32 " : "crc32c ") +
         std::to_string(checksum.bytes_per_checksum) + "\nrepair " + RepairIdText(repair_id) +
         "\n" + CorruptLines(corrupt);
}

std::string EndpointEndText(const std::vector<EndpointRequest::Target>& targets, uint32_t attempts,
                            const std::vector<StripeFacts::Source>& corrupt) {
  return BytesLine(targets) + "attempts " + std::to_string(attempts) + "\n" +
         CorruptLines(corrupt);
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

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/stripe_record.h"

#include <algorithm>
#include <span>

#include "absl/strings/escaping.h"
#include "base/bytes/crc32c.h"
#include "base/bytes/sha256.h"
#include "base/check.h"
#include "base/status.h"

namespace ecpipe {

namespace {

constexpr uint8_t kWithoutSha256 = 1;
constexpr uint8_t kWithSha256 = 2;
constexpr size_t kCrcBytes = 4;

void AppendVarint(uint32_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendFixed(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t Crc(const std::string& prefix, std::string_view bytes) {
  const auto view = [](std::string_view text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  return ExtendCrc32c(Crc32c(view(prefix)), view(bytes));
}

uint32_t CrcOf(const StripeHeader& header, std::string_view bytes) {
  std::string prefix;
  AppendFixed(header.stripe_id.size(), 4, &prefix);
  prefix += header.stripe_id;
  AppendFixed(header.code.size(), 4, &prefix);
  prefix += header.code;
  AppendFixed(header.block_bytes, 8, &prefix);
  return Crc(prefix, bytes);
}

// Reads forward over bytes that may be anything; every read says whether it stayed inside.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool Varint(uint32_t* value) {
    uint64_t sum = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      sum |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      *value = static_cast<uint32_t>(sum);
      return sum <= UINT32_MAX;
    }
    return false;
  }

  bool Take(size_t bytes, std::string_view* out) {
    if (rest_.size() < bytes) return false;
    *out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool ReadMember(Reader* reader, uint8_t format, std::string_view previous_id,
                StripeMember* member) {
  uint32_t shared = 0;
  uint32_t suffix_bytes = 0;
  std::string_view suffix;
  if (!reader->Varint(&member->node_ref) || !reader->Varint(&shared) ||
      !reader->Varint(&suffix_bytes) || !reader->Take(suffix_bytes, &suffix)) {
    return false;
  }
  if (shared > previous_id.size() || shared + suffix.size() > kMaxCatalogIdBytes) return false;
  member->block_id.reserve(shared + suffix.size());
  member->block_id.append(previous_id.substr(0, shared)).append(suffix);
  if (format == kWithSha256) {
    std::string_view sha256;
    if (!reader->Take(kSha256Bytes, &sha256)) return false;
    member->sha256 = absl::BytesToHexString({sha256.data(), sha256.size()});
  }
  return !member->block_id.empty();
}

size_t SharedPrefix(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < limit && a[shared] == b[shared]) ++shared;
  return shared;
}

}  // namespace

std::string EncodeMembers(const StripeHeader& header, const std::vector<StripeMember>& members) {
  ECPIPE_CHECK(!members.empty() && members.size() <= kMaxStripeBlocks);
  const bool with_sha256 = !members[0].sha256.empty();
  std::string out;
  out.push_back(static_cast<char>(with_sha256 ? kWithSha256 : kWithoutSha256));
  AppendVarint(static_cast<uint32_t>(members.size()), &out);
  std::string_view previous;
  for (const StripeMember& member : members) {
    ECPIPE_CHECK(!member.block_id.empty() && member.block_id.size() <= kMaxCatalogIdBytes);
    const size_t shared = SharedPrefix(previous, member.block_id);
    AppendVarint(member.node_ref, &out);
    AppendVarint(static_cast<uint32_t>(shared), &out);
    AppendVarint(static_cast<uint32_t>(member.block_id.size() - shared), &out);
    out.append(member.block_id, shared);
    ECPIPE_CHECK(with_sha256 ? IsSha256Hex(member.sha256) : member.sha256.empty());
    out.append(absl::HexStringToBytes(member.sha256));
    previous = member.block_id;
  }
  AppendFixed(CrcOf(header, out), kCrcBytes, &out);
  return out;
}

absl::StatusOr<std::vector<StripeMember>> DecodeMembers(const StripeHeader& header,
                                                        std::string_view bytes) {
  if (bytes.size() < kCrcBytes) return absl::DataLossError("the record of its blocks is cut short");
  const std::string_view body = bytes.substr(0, bytes.size() - kCrcBytes);
  std::string crc;
  AppendFixed(CrcOf(header, body), kCrcBytes, &crc);
  if (bytes.substr(body.size()) != crc) {
    return absl::DataLossError("the checksum of its record does not match");
  }

  Reader reader(body);
  std::string_view format;
  if (!reader.Take(1, &format) || (format[0] != kWithoutSha256 && format[0] != kWithSha256)) {
    return absl::DataLossError("the record of its blocks has an unknown format");
  }
  uint32_t count = 0;
  if (!reader.Varint(&count) || count == 0 || count > kMaxStripeBlocks) {
    return absl::DataLossError("the number of blocks in its record is out of range");
  }
  std::vector<StripeMember> members(count);
  std::string_view previous;
  for (StripeMember& member : members) {
    if (!ReadMember(&reader, static_cast<uint8_t>(format[0]), previous, &member)) {
      return absl::DataLossError("a block in its record is malformed");
    }
    previous = member.block_id;
  }
  if (!reader.empty()) return absl::DataLossError("its record goes on after the last block");
  return members;
}

uint32_t BlockIdHash(std::string_view block_id) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV offset basis
  for (const char byte : block_id) {
    hash ^= static_cast<uint8_t>(byte);
    hash *= 0x100000001b3;  // FNV prime
  }
  // FNV leaves the last bytes of an id in the low bits only, and ids differ in their last bytes.
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace ecpipe

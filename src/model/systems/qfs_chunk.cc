// SPDX-License-Identifier: Apache-2.0
#include "model/systems/qfs_chunk.h"

#include <algorithm>
#include <utility>

#include "base/bytes/exact_integer.h"
#include "base/status.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

constexpr char kChunkPrefix[] = "qfs.";
constexpr uint64_t kCellUnit = 4096;
constexpr int kMostData = 64;
// Far above any file, and far from an overflow of chunk addresses.
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 50;

// The fields of a claim, in their order.
std::vector<std::pair<const char*, std::string>> FieldsOf(const QfsPlace& place) {
  return {{"file", std::to_string(place.id.file)},
          {"chunk", std::to_string(place.id.chunk)},
          {"version", std::to_string(place.id.version)},
          {"chunk-offset", std::to_string(place.address)},
          {"file-size", std::to_string(place.file.bytes)},
          {"striper", std::to_string(place.file.striper)},
          {"data", std::to_string(place.file.data)},
          {"parity", std::to_string(place.file.parity)},
          {"cell", std::to_string(place.file.cell_bytes)}};
}

}  // namespace

std::string QfsChunkId::FileName() const {
  return std::to_string(file) + "." + std::to_string(chunk) + "." + std::to_string(version);
}

std::string QfsChunkId::Name() const { return kChunkPrefix + FileName(); }

std::optional<QfsChunkId> QfsChunkOfFile(const std::string& file_name) {
  const size_t first = file_name.find('.');
  const size_t second = first == std::string::npos ? first : file_name.find('.', first + 1);
  if (second == std::string::npos) return std::nullopt;
  QfsChunkId id;
  const bool good = ReadExactInteger(file_name.substr(0, first), &id.file) &&
                    ReadExactInteger(file_name.substr(first + 1, second - first - 1), &id.chunk) &&
                    ReadExactInteger(file_name.substr(second + 1), &id.version);
  if (!good || id.file < 1 || id.chunk < 1 || id.version < 0) return std::nullopt;
  return id;
}

absl::StatusOr<QfsChunkId> ParseQfsChunk(const std::string& name) {
  if (name.rfind(kChunkPrefix, 0) == 0) {
    if (const auto id = QfsChunkOfFile(name.substr(sizeof kChunkPrefix - 1))) return *id;
  }
  return absl::InvalidArgumentError(
      "not the name of a QFS chunk; the form is qfs.<file>.<chunk>.<version>");
}

absl::Status QfsFile::Validate() const {
  if (file < 1)
    return absl::InvalidArgumentError("file id " + std::to_string(file) + " is out of range");
  if (bytes == 0 || bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError("a file of " + std::to_string(bytes) +
                                      " bytes is out of range: it needs 1 to " +
                                      std::to_string(kMaxFileBytes) + " bytes");
  }
  if (striper != 2 && striper != 3) {
    return absl::InvalidArgumentError("striper type " + std::to_string(striper) +
                                      " is not known: it must be 2 (QFS's code) or 3 (Jerasure's)");
  }
  const bool coded =
      striper == 2 ? data >= 1 && data <= kMostData && parity == 3 : data == 6 && parity == 3;
  if (!coded) {
    return absl::InvalidArgumentError("striper type " + std::to_string(striper) + " with " +
                                      std::to_string(data) + " data and " + std::to_string(parity) +
                                      " recovery chunks is not known: type 2 " +
                                      "needs 1 to 64 and 3, type 3 needs 6 and 3");
  }
  if (cell_bytes < kCellUnit || cell_bytes > kQfsChunkBytes || cell_bytes % kCellUnit != 0 ||
      kQfsChunkBytes % cell_bytes != 0) {
    return absl::InvalidArgumentError(
        "a cell of " + std::to_string(cell_bytes) +
        " bytes is out of range: it is a multiple of 4096 that divides 64 MiB");
  }
  return absl::OkStatus();
}

std::string QfsFile::Code() const {
  return std::string(striper == 2 ? "qfs-rs(" : "qfs-jerasure(") + std::to_string(data) + "," +
         std::to_string(parity) + ")";
}

uint64_t QfsFile::groups() const {
  const uint64_t group_bytes = static_cast<uint64_t>(data) * kQfsChunkBytes;
  return (bytes + group_bytes - 1) / group_bytes;
}

uint64_t QfsFile::ChunkBytes(uint64_t group, int index) const {
  const uint64_t group_bytes = static_cast<uint64_t>(data) * kQfsChunkBytes;
  if (group >= groups()) return 0;
  const uint64_t rest = bytes - group * group_bytes;
  if (rest >= group_bytes) return kQfsChunkBytes;
  const uint64_t row = static_cast<uint64_t>(data) * cell_bytes;
  // A recovery chunk is as long as the first data chunk.
  const uint64_t before = index < data ? static_cast<uint64_t>(index) * cell_bytes : 0;
  const uint64_t last_row = rest % row;
  return rest / row * cell_bytes +
         (last_row <= before ? 0 : std::min(last_row - before, cell_bytes));
}

uint64_t QfsFile::GroupAddress(uint64_t group) const {
  return group * static_cast<uint64_t>(blocks()) * kQfsChunkBytes;
}

std::string QfsFile::StripeId(uint64_t group) const {
  return kChunkPrefix + std::to_string(file) + "." + std::to_string(group);
}

absl::Status QfsPlace::Validate() const {
  ECPIPE_RETURN_IF_ERROR(file.Validate());
  if (id.file != file.file || id.chunk < 1 || id.version < 0) {
    return absl::InvalidArgumentError("chunk " + id.FileName() + " is not one of file " +
                                      std::to_string(file.file));
  }
  if (address % kQfsChunkBytes != 0) {
    return absl::InvalidArgumentError("chunk-offset " + std::to_string(address) +
                                      " is not a multiple of 64 MiB");
  }
  if (bytes() == 0) {
    return absl::InvalidArgumentError("chunk-offset " + std::to_string(address) +
                                      " is behind the end of a file of " +
                                      std::to_string(file.bytes) + " bytes");
  }
  return absl::OkStatus();
}

std::string QfsPlace::Claim() const {
  std::string claim;
  for (const auto& [key, value] : FieldsOf(*this)) claim += std::string(key) + " " + value + "\n";
  return claim;
}

absl::StatusOr<QfsPlace> QfsPlace::OfClaim(const std::string& claim) {
  QfsPlace place;
  size_t at = 0;
  const auto take = [&](const std::string& key, auto* value) {
    const size_t end = claim.find('\n', at);
    if (end == std::string::npos || claim.compare(at, key.size() + 1, key + " ") != 0) return false;
    const std::string text = claim.substr(at + key.size() + 1, end - at - key.size() - 1);
    at = end + 1;
    return ReadExactInteger(text, value);
  };
  const bool good = take("file", &place.id.file) && take("chunk", &place.id.chunk) &&
                    take("version", &place.id.version) && take("chunk-offset", &place.address) &&
                    take("file-size", &place.file.bytes) && take("striper", &place.file.striper) &&
                    take("data", &place.file.data) && take("parity", &place.file.parity) &&
                    take("cell", &place.file.cell_bytes) && at == claim.size();
  if (!good)
    return absl::InvalidArgumentError("what the request says of a QFS chunk cannot be read");
  place.file.file = place.id.file;
  ECPIPE_RETURN_IF_ERROR(place.Validate());
  return place;
}

std::string DifferenceOf(const QfsPlace& is, const QfsPlace& said) {
  const auto are = FieldsOf(is);
  const auto were_said = FieldsOf(said);
  for (size_t i = 0; i < are.size(); ++i) {
    if (are[i].second == were_said[i].second) continue;
    return std::string(are[i].first) + " is " + are[i].second + " and not " + were_said[i].second;
  }
  return "";
}

absl::StatusOr<std::string> QfsStorageId(const std::string& chunkserver) {
  const size_t colon = chunkserver.rfind(':');
  uint16_t port = 0;
  const bool good = colon != std::string::npos && colon > 0 &&
                    ReadExactInteger(chunkserver.substr(colon + 1), &port) && port > 0;
  const std::string id =
      good ? kChunkPrefix + chunkserver.substr(0, colon) + "_" + std::to_string(port) : "";
  if (!good || !ValidateBlockId(id).ok()) {
    return absl::InvalidArgumentError(
        "'" + chunkserver + "' is not HOST:PORT of a chunkserver, with a host of letters, " +
        "digits, '.', '_' and '-'");
  }
  return id;
}

bool IsQfsStorageId(const std::string& storage_id) {
  return storage_id.rfind(kChunkPrefix, 0) == 0;
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/packed_ids.h"

#include "coordinator/store/stripe_record.h"

namespace ecpipe {

std::string PackIds(const std::vector<std::string>& ids) {
  static_assert(kMaxCatalogIdBytes <= 255);
  std::string packed;
  for (const std::string& id : ids) {
    packed.push_back(static_cast<char>(id.size()));
    packed += id;
  }
  return packed;
}

absl::StatusOr<std::vector<std::string>> UnpackIds(std::string_view packed) {
  std::vector<std::string> ids;
  while (!packed.empty()) {
    const size_t bytes = static_cast<uint8_t>(packed.front());
    packed.remove_prefix(1);
    if (bytes > packed.size()) return absl::DataLossError("the list of block ids ends too early");
    ids.emplace_back(packed.substr(0, bytes));
    packed.remove_prefix(bytes);
  }
  return ids;
}

absl::StatusOr<uint32_t> StoredUint32(const SqliteStatement& row, int column, uint32_t most) {
  const int64_t value = row.Int(column);
  if (value >= 0 && value <= int64_t{most}) return static_cast<uint32_t>(value);
  return absl::DataLossError("column " + std::to_string(column) + " holds " +
                             std::to_string(value));
}

}  // namespace ecpipe

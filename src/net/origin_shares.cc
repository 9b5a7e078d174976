// SPDX-License-Identifier: Apache-2.0
#include "net/origin_shares.h"

#include <algorithm>

namespace ecpipe {

void OriginShares::Add(uint64_t id, const std::string& origin) {
  if (origins_.emplace(id, origin).second) ++counts_[origin];
}

void OriginShares::Remove(uint64_t id) {
  const auto found = origins_.find(id);
  if (found == origins_.end()) return;
  const auto count = counts_.find(found->second);
  if (--count->second == 0) counts_.erase(count);
  origins_.erase(found);
}

size_t OriginShares::Of(const std::string& origin) const {
  const auto count = counts_.find(origin);
  return count == counts_.end() ? 0 : count->second;
}

std::optional<uint64_t> OriginShares::Surplus() const {
  size_t most = 0;
  for (const auto& [origin, count] : counts_) most = std::max(most, count);
  for (const auto& [id, origin] : origins_) {
    if (counts_.at(origin) == most) return id;
  }
  return std::nullopt;
}

std::optional<uint64_t> OriginShares::Oldest() const {
  if (origins_.empty()) return std::nullopt;
  return origins_.begin()->first;
}

}  // namespace ecpipe

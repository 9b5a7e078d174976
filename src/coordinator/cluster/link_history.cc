// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/link_history.h"

#include <algorithm>
#include <cmath>

namespace ecpipe {
namespace {

bool IsSpeed(double bytes_per_second) {
  return std::isfinite(bytes_per_second) && bytes_per_second > 0;
}

}  // namespace

void LinkHistory::Measured(const std::string& from, const std::string& to, double bytes_per_second,
                           TimePoint now) {
  if (!IsSpeed(bytes_per_second)) return;
  const std::pair key(from, to);
  const auto known = means_.find(key);
  if (known == means_.end()) {
    if (means_.size() < kMaxPairs) means_[key] = {bytes_per_second, 1, now};
    return;
  }
  Mean& mean = known->second;
  const double half_lives = Seconds(now - mean.last) / Seconds(kHalfLife);
  const double weight = std::max(kWeight, 1 - std::exp2(-half_lives));
  mean.bytes_per_second += weight * (bytes_per_second - mean.bytes_per_second);
  ++mean.samples;
  mean.last = now;
}

void LinkHistory::AtLeast(const std::string& from, const std::string& to, double bytes_per_second) {
  const auto known = means_.find({from, to});
  if (known == means_.end() || !IsSpeed(bytes_per_second)) return;
  known->second.bytes_per_second = std::max(known->second.bytes_per_second, bytes_per_second);
}

void LinkHistory::Forget(TimePoint now) {
  std::erase_if(means_, [&](const auto& mean) { return now - mean.second.last > kForgotten; });
}

std::vector<LinkEstimate> LinkHistory::All() const {
  std::vector<LinkEstimate> all;
  for (const auto& [pair, mean] : means_) {
    all.push_back({pair.first, pair.second, mean.bytes_per_second, mean.samples, mean.last});
  }
  return all;
}

SpeedTable LinkHistory::Table() const {
  SpeedTable table;
  for (const auto& [pair, mean] : means_) {
    table.pairs.emplace_hint(table.pairs.end(), pair, mean.bytes_per_second);
    SpeedTable::Node& from = table.nodes[pair.first];
    from.up_bytes_per_second = std::max(from.up_bytes_per_second, mean.bytes_per_second);
    ++from.links_up;
    SpeedTable::Node& to = table.nodes[pair.second];
    to.down_bytes_per_second = std::max(to.down_bytes_per_second, mean.bytes_per_second);
    ++to.links_down;
  }
  return table;
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/link_history.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ecpipe {
namespace {

// Streams that share nothing have all of what each has alone. Measurements differ by some percent.
constexpr double kFreeShare = 0.8;

bool IsSpeed(double bytes_per_second) {
  return std::isfinite(bytes_per_second) && bytes_per_second > 0;
}

// If there is no room, forgets a tenth: the entries whose `last` is the longest ago.
template <typename Entries, typename LastOf>
void MakeRoom(size_t most, const LastOf& last, Entries* entries) {
  if (entries->size() < most) return;
  std::vector<TimePoint> times;
  times.reserve(entries->size());
  for (const auto& [key, entry] : *entries) times.push_back(last(entry));
  size_t too_many = entries->size() / 10 + 1;
  const auto oldest = times.begin() + static_cast<std::ptrdiff_t>(too_many - 1);
  std::nth_element(times.begin(), oldest, times.end());
  std::erase_if(*entries, [&](const auto& entry) {
    if (too_many == 0 || last(entry.second) > *oldest) return false;
    --too_many;
    return true;
  });
}

}  // namespace

void LinkHistory::Measured(const std::string& from, const std::string& to, double bytes_per_second,
                           TimePoint now) {
  if (!IsSpeed(bytes_per_second)) return;
  const std::pair key(from, to);
  const auto known = means_.find(key);
  if (known == means_.end()) {
    MakeRoom(max_pairs_, [](const Mean& mean) { return mean.last; }, &means_);
    means_[key] = {bytes_per_second, 1, now};
    return;
  }
  known->second.Take(bytes_per_second, now);
}

void LinkHistory::Mean::Take(double measured, TimePoint now) {
  const double half_lives = Seconds(now - last) / Seconds(kHalfLife);
  const double weight = std::max(kWeight, 1 - std::exp2(-half_lives));
  bytes_per_second += weight * (measured - bytes_per_second);
  ++samples;
  last = now;
}

void LinkHistory::Together(const Pair& key, double bytes_per_second, double alone_bytes_per_second,
                           TimePoint now) {
  if (!IsSpeed(bytes_per_second) || !IsSpeed(alone_bytes_per_second)) return;
  const bool shared = bytes_per_second < kFreeShare * alone_bytes_per_second;
  const auto known = limits_.find(key);
  if (known == limits_.end()) {
    MakeRoom(max_pairs_, [](const Limit& limit) { return limit.mean.last; }, &limits_);
    limits_[key] = {{bytes_per_second, 1, now}, shared};
    return;
  }
  Limit& limit = known->second;
  if (shared && limit.shared) {
    limit.mean.Take(bytes_per_second, now);
    return;
  }
  // What was found last counts.
  limit.mean = {bytes_per_second, limit.mean.samples + 1, now};
  limit.shared = shared;
}

double LinkHistory::SpeedOf(const std::string& from, const std::string& to) const {
  const auto known = means_.find({from, to});
  return known == means_.end() ? 0 : known->second.bytes_per_second;
}

void LinkHistory::AtLeast(const std::string& from, const std::string& to, double bytes_per_second) {
  const auto known = means_.find({from, to});
  if (known == means_.end() || !IsSpeed(bytes_per_second)) return;
  known->second.bytes_per_second = std::max(known->second.bytes_per_second, bytes_per_second);
}

void LinkHistory::Forget(TimePoint now) {
  std::erase_if(means_, [&](const auto& mean) { return now - mean.second.last > kForgotten; });
  std::erase_if(limits_,
                [&](const auto& limit) { return now - limit.second.mean.last > kForgotten; });
}

std::vector<LinkEstimate> LinkHistory::All() const {
  std::vector<LinkEstimate> all;
  for (const auto& [pair, mean] : means_) {
    all.push_back({pair.first, pair.second, mean.bytes_per_second, mean.samples, mean.last, false});
  }
  for (const auto& [pair, limit] : limits_) {
    if (!limit.shared) continue;
    all.push_back({pair.first, pair.second, limit.mean.bytes_per_second, limit.mean.samples,
                   limit.mean.last, true});
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
  for (const auto& [pair, limit] : limits_) {
    const double speed = limit.mean.bytes_per_second;
    if (!pair.first.empty() && !pair.second.empty()) {
      if (limit.shared) table.racks[pair] = speed;
      continue;
    }
    const auto sharing = limit.shared ? SpeedTable::Sharing::kShared : SpeedTable::Sharing::kFree;
    SpeedTable::Node& node = table.nodes[pair.first.empty() ? pair.second : pair.first];
    double& of_node = pair.second.empty() ? node.up_bytes_per_second : node.down_bytes_per_second;
    of_node = std::max(of_node, speed);
    (pair.second.empty() ? node.up_sharing : node.down_sharing) = sharing;
  }
  return table;
}

}  // namespace ecpipe

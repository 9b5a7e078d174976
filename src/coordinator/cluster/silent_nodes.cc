// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/silent_nodes.h"

#include <algorithm>

namespace ecpipe {

bool SilentNodes::NoAnswer(const std::string& node, const std::string& reason, TimePoint now) {
  Node& known = nodes_[node];
  if (known.silent) return false;
  if (known.times > 0 && now - known.readmitted > kMemory) known.times = 0;
  Duration pause{};
  if (known.times > 0) {
    constexpr uint32_t kMostDoublings = 6;  // beyond kLongestPause
    pause = std::chrono::seconds(1 << std::min(known.times, kMostDoublings));
  }
  ++known.times;
  known.silent = true;
  known.latest = {reason, now};
  known.readmit_from = now + std::min(pause, kLongestPause);
  return true;
}

bool SilentNodes::Answered(const std::string& node, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.silent) return false;
  if (now < found->second.readmit_from) return false;
  found->second.silent = false;
  found->second.readmitted = now;
  return true;
}

void SilentNodes::Tidy(const std::function<bool(const std::string& node)>& gone, TimePoint now) {
  std::erase_if(nodes_, [&](const auto& entry) {
    const Node& node = entry.second;
    return gone(entry.first) || (!node.silent && now - node.readmitted > kMemory);
  });
}

const SilentNodes::Silence* SilentNodes::Find(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() || !found->second.silent ? nullptr : &found->second.latest;
}

std::vector<std::string> SilentNodes::All() const {
  std::vector<std::string> silent;
  for (const auto& [name, node] : nodes_) {
    if (node.silent) silent.push_back(name);
  }
  return silent;
}

std::vector<std::string> SilentNodes::ToProbe(TimePoint now) const {
  std::vector<std::string> due;
  for (const auto& [name, node] : nodes_) {
    if (node.silent && now >= node.readmit_from) due.push_back(name);
  }
  return due;
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#include "net/unmatched_connections.h"

#include <algorithm>

namespace ecpipe {

Unmatched* UnmatchedConnections::Surplus() {
  if (connections_.size() < capacity_ || connections_.empty()) return nullptr;
  size_t most = 0;
  for (const auto& [origin, count] : by_origin_) most = std::max(most, count);
  const auto oldest = std::find_if(
      connections_.begin(), connections_.end(),
      [&](const Unmatched& connection) { return by_origin_.at(connection.origin) == most; });
  return &*oldest;
}

Unmatched* UnmatchedConnections::Add(StreamSocket socket, const std::string& origin,
                                     TimePoint deadline) {
  Unmatched& added = connections_.emplace_back();
  added.socket = std::move(socket);
  added.origin = origin;
  added.deadline = deadline;
  added.self = std::prev(connections_.end());
  ++by_origin_[origin];
  return &added;
}

void UnmatchedConnections::Remove(Unmatched* connection) {
  const auto count = by_origin_.find(connection->origin);
  if (--count->second == 0) by_origin_.erase(count);
  connections_.erase(connection->self);
}

}  // namespace ecpipe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/frame.h"
#include "net/stream_socket.h"

namespace ecpipe {

// A connection on its way to an edge.
struct Unmatched {
  StreamSocket socket;
  std::string origin;  // the address that it comes from
  TimePoint deadline;
  bool secured = false;  // the TLS handshake is over, or there is none
  std::array<uint8_t, kHelloBytes> bytes{};
  size_t received = 0;
  std::optional<Hello> hello;  // once all of it has come
  std::list<Unmatched>::iterator self;
};

// The connections of a data port that have not been matched with an edge yet: a bounded number,
// shared fairly among the addresses that they come from. Used by one thread.
class UnmatchedConnections {
 public:
  explicit UnmatchedConnections(size_t capacity) : capacity_(capacity) {}

  bool empty() const { return connections_.empty(); }
  // The connection to close before another may be added; null if there is room. It is the oldest of
  // the address with the most connections, so a flood from one address pushes out only its own.
  Unmatched* Surplus();
  // Valid until it is removed. Deadlines never come earlier than those of older ones.
  Unmatched* Add(StreamSocket socket, const std::string& origin, TimePoint deadline);
  void Remove(Unmatched* connection);
  // Null when there is none.
  Unmatched* Oldest() { return connections_.empty() ? nullptr : &connections_.front(); }

 private:
  const size_t capacity_;
  std::list<Unmatched> connections_;         // oldest first
  std::map<std::string, size_t> by_origin_;  // connections of each address; no zeros
};

}  // namespace ecpipe
